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

// Package architecture holds the code to its design: what each package may
// import, and that the pure ones touch nothing.
package architecture

import (
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

const dropIn = "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"

// layers are the drop-in's packages. Each may import those that it lists, and
// no other of them.
var layers = map[string]struct {
	below []string
	pure  bool
}{
	"":           {below: []string{"/wake", "/act", "/journal", "/decide", "/rank", "/threshold", "/observe", "/observe/machine"}},
	"/wake":      {below: []string{"/decide", "/rank", "/threshold", "/observe"}},
	"/act":       {below: []string{"/decide", "/rank", "/threshold", "/observe"}},
	"/journal":   {below: []string{"/decide", "/rank", "/threshold", "/observe"}},
	"/decide":    {below: []string{"/rank", "/threshold", "/observe"}, pure: true},
	"/rank":      {below: []string{"/observe"}, pure: true},
	"/threshold": {below: []string{"/observe"}, pure: true},
	"/observe":   {pure: true},
	// The readers of observe: what touches the world there.
	"/observe/machine": {below: []string{"/observe"}},
}

// pureImports are what a pure package may import besides the layers below it:
// values and arithmetic. Package time is there for its types; see timeTouches.
var pureImports = []string{
	"cmp", "errors", "fmt", "maps", "math", "math/big", "math/bits", "slices", "sort", "strconv", "strings", "time",
	"k8s.io/api/core/v1",
	"k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/types",
	"k8s.io/component-helpers/resource",
	"k8s.io/kubelet/pkg/apis/stats/v1alpha1",
	"k8s.io/kubernetes/pkg/kubelet/eviction/api",
}

// timeTouches are the functions of package time that read or wait for a clock.
var timeTouches = regexp.MustCompile(`^(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTicker|NewTimer)$`)

func load(t *testing.T) map[string]*packages.Package {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo,
		// The loader also runs go without modules, where -modfile is refused unless
		// it knows that for a build flag.
		BuildFlags: strings.Fields(os.Getenv("GOFLAGS")),
		Env:        append(os.Environ(), "GOFLAGS="),
	}, dropIn+"/...")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*packages.Package{}
	for _, p := range loaded {
		for _, fault := range p.Errors {
			t.Fatal(fault)
		}
		found[strings.TrimPrefix(p.PkgPath, dropIn)] = p
	}
	return found
}

func TestLayers(t *testing.T) {
	found := load(t)
	if !slices.Equal(slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(layers))) {
		t.Fatalf("the packages are %v; give each new one its place in layers", slices.Sorted(maps.Keys(found)))
	}
	for name, p := range found {
		for path := range p.Imports {
			layer, ours := strings.CutPrefix(path, dropIn)
			switch {
			case ours && !slices.Contains(layers[name].below, layer):
				t.Errorf("eviction%s imports eviction%s, which is not below it", name, layer)
			case !ours && layers[name].pure && !slices.Contains(pureImports, path):
				t.Errorf("eviction%s is pure and imports %s", name, path)
			}
		}
	}
}

// TestPureTouchesNothing looks for what imports do not show: a clock, a
// goroutine, a channel.
func TestPureTouchesNothing(t *testing.T) {
	for name, p := range load(t) {
		if !layers[name].pure {
			continue
		}
		for identifier, object := range p.TypesInfo.Uses {
			function := object.Pkg() != nil && object.Parent() == object.Pkg().Scope()
			if function && object.Pkg().Path() == "time" && timeTouches.MatchString(object.Name()) {
				t.Errorf("%s: time.%s reads or waits for a clock", p.Fset.Position(identifier.Pos()), object.Name())
			}
		}
		for _, file := range p.Syntax {
			ast.Inspect(file, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: a goroutine", p.Fset.Position(node.Pos()))
				case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
					t.Errorf("%s: a channel", p.Fset.Position(node.Pos()))
				case *ast.UnaryExpr:
					if node.Op == token.ARROW {
						t.Errorf("%s: a channel", p.Fset.Position(node.Pos()))
					}
				}
				return true
			})
		}
	}
}

// TestImportsOnlyWhatTheKubeletLinks lets the drop-in be built in a Kubernetes
// checkout without a change to its vendor folder.
func TestImportsOnlyWhatTheKubeletLinks(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		linked := dependencies(t, goos, "k8s.io/kubernetes/cmd/kubelet")
		for path := range dependencies(t, goos, dropIn) {
			if !linked[path] && !strings.HasPrefix(path, dropIn) {
				t.Errorf("on %s the drop-in links %s, which the kubelet does not", goos, path)
			}
		}
	}
}

func dependencies(t *testing.T, goos, path string) map[string]bool {
	t.Helper()
	command := exec.Command("go", "list", "-deps", path)
	command.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v", path, err)
	}
	found := map[string]bool{}
	for _, line := range strings.Fields(string(output)) {
		found[line] = true
	}
	return found
}

// mostLines is where a file has become more than one room.
const mostLines = 500

func TestFiles(t *testing.T) {
	vague := regexp.MustCompile(`(?i)helper|util|common|misc`)
	root := filepath.Join("..", "..")
	for _, folder := range []string{"pkg", "test"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			if vague.MatchString(entry.Name()) {
				t.Errorf("%s: the name does not say what lives in it", path)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			// The shim mirrors one package of upstream's, name by name.
			if lines := strings.Count(string(text), "\n"); lines > mostLines && entry.Name() != "shim_test.go" {
				t.Errorf("%s: %d lines", path, lines)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
