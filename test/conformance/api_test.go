/*
Copyright The kubelet-eviction Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package conformance

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
	"k8s.io/kubernetes/pkg/kubelet/eviction"

	ours "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

const (
	upstreamPath = "k8s.io/kubernetes/pkg/kubelet/eviction"
	ourPath      = "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// TestExportedAPI compares every exported object of upstream's package with
// ours, on each platform that a kubelet is built for.
func TestExportedAPI(t *testing.T) {
	for _, goos := range []string{"linux", "windows", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			upstream, mine := load(t, goos)
			same, all := 0, 0
			for _, name := range upstream.Names() {
				object := upstream.Lookup(name)
				if !object.Exported() {
					continue
				}
				all++
				if fault := compareObjects(object, mine.Lookup(name)); fault != "" {
					t.Errorf("%s: %s", name, fault)
					continue
				}
				same++
			}
			for _, name := range mine.Names() {
				if mine.Lookup(name).Exported() && upstream.Lookup(name) == nil {
					t.Errorf("%s: exported here, unknown upstream", name)
				}
			}
			report("API %d/%d on %s", same, all, goos)
		})
	}
}

func load(t *testing.T, goos string) (upstream, mine *types.Scope) {
	t.Helper()
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedExportFile,
		// The loader also runs go without modules, where -modfile is refused unless
		// it knows that for a build flag.
		BuildFlags: strings.Fields(os.Getenv("GOFLAGS")),
		Env:        append(os.Environ(), "GOFLAGS="),
	}
	if goos != runtime.GOOS {
		config.Env = append(config.Env, "GOOS="+goos, "CGO_ENABLED=0")
	}
	loaded, err := packages.Load(config, upstreamPath, ourPath)
	if err != nil {
		t.Fatal(err)
	}
	scopes := map[string]*types.Scope{}
	for _, p := range loaded {
		for _, fault := range p.Errors {
			t.Fatal(fault)
		}
		scopes[p.PkgPath] = p.Types.Scope()
	}
	return scopes[upstreamPath], scopes[ourPath]
}

// compareObjects returns how ours differs from upstream's; nothing when it does not.
func compareObjects(upstream, mine types.Object) string {
	if mine == nil {
		return "missing here"
	}
	if a, b := fmt.Sprintf("%T", upstream), fmt.Sprintf("%T", mine); a != b {
		return fmt.Sprintf("upstream a %s, here a %s", a, b)
	}
	if a, ok := upstream.(*types.Const); ok && !constant.Compare(a.Val(), token.EQL, mine.(*types.Const).Val()) {
		return fmt.Sprintf("upstream %v, here %v", a.Val(), mine.(*types.Const).Val())
	}
	if a, b := typeString(upstream.Type()), typeString(mine.Type()); a != b {
		return fmt.Sprintf("upstream %s, here %s", a, b)
	}
	if _, isType := upstream.(*types.TypeName); !isType {
		return ""
	}
	if fault := compareMethods(upstream.Type(), mine.Type()); fault != "" {
		return fault
	}
	a, isStruct := upstream.Type().Underlying().(*types.Struct)
	b, alsoStruct := mine.Type().Underlying().(*types.Struct)
	if isStruct && alsoStruct {
		if fault := compareFields(a, b); fault != "" || upstream.Name() == "Config" {
			return fault
		}
		if a.NumFields() != b.NumFields() {
			return fmt.Sprintf("upstream has %d fields, here there are %d", a.NumFields(), b.NumFields())
		}
		return ""
	}
	if a, b := typeString(upstream.Type().Underlying()), typeString(mine.Type().Underlying()); a != b {
		return fmt.Sprintf("upstream %s, here %s", a, b)
	}
	return ""
}

// compareFields wants every exported field of upstream's, in any order.
func compareFields(upstream, mine *types.Struct) string {
	fields := map[string]string{}
	for field := range mine.Fields() {
		fields[field.Name()] = typeString(field.Type())
	}
	for field := range upstream.Fields() {
		if a, b := typeString(field.Type()), fields[field.Name()]; field.Exported() && a != b {
			return fmt.Sprintf("field %s: upstream %s, here %q", field.Name(), a, b)
		}
	}
	return ""
}

func compareMethods(upstream, mine types.Type) string {
	a, b := methods(upstream), methods(mine)
	if maps.Equal(a, b) {
		return ""
	}
	return fmt.Sprintf("methods: upstream %v, here %v", a, b)
}

func methods(t types.Type) map[string]string {
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	set := types.NewMethodSet(t)
	found := map[string]string{}
	for method := range set.Methods() {
		if method.Obj().Exported() {
			found[method.Obj().Name()] = typeString(method.Type())
		}
	}
	return found
}

// typeString writes a type with both packages under one name.
func typeString(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p.Path() == upstreamPath || p.Path() == ourPath {
			return "eviction"
		}
		return p.Path()
	})
}

// TestDefaults compares what the kubelet's flags and defaults are made of.
func TestDefaults(t *testing.T) {
	if !maps.Equal(ours.DefaultEvictionHard, eviction.DefaultEvictionHard) {
		t.Errorf("DefaultEvictionHard: upstream %v, here %v", eviction.DefaultEvictionHard, ours.DefaultEvictionHard)
	}
}
