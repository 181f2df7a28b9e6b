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

// Layover writes this package as it belongs into a Kubernetes tree of one minor:
//
//	go run ./hack/layover -minor 1.36 -from . -to DIR
//
// DIR gets pkg/kubelet/eviction with every file that the minor has. Files for
// other minors are left out, build constraints say no more of minors, and imports
// have upstream's prefix. Tests stay here: they need modules that Kubernetes does
// not vendor. Layover prints the path of each file below DIR.
package main

import (
	"flag"
	"fmt"
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	folder = "pkg/kubelet/eviction"
	// What imports begin with, in this repository and in Kubernetes.
	ours, theirs = `"github.com/kubelet-eviction/kubelet-eviction/` + folder, `"k8s.io/kubernetes/` + folder
	// tagPrefix begins the build tag of a minor, as hack/goflags sets it.
	tagPrefix = "kubernetes"
)

func main() {
	minor := flag.String("minor", "", "minor of Kubernetes, as in 1.36")
	from := flag.String("from", ".", "root of this repository")
	to := flag.String("to", "", "folder that gets the package")
	flag.Parse()
	if *minor == "" || *to == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	written, err := layOver(*from, *to, *minor)
	if err != nil {
		fmt.Fprintln(os.Stderr, "layover:", err)
		os.Exit(1)
	}
	for _, path := range written {
		fmt.Println(path)
	}
}

// layOver returns the paths below to that it wrote, with slashes.
func layOver(from, to, minor string) (written []string, err error) {
	err = filepath.WalkDir(filepath.Join(from, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fitted, keep, err := fit(string(text), minor)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		relative, err := filepath.Rel(from, path)
		if err != nil || !keep {
			return err
		}
		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		written = append(written, filepath.ToSlash(relative))
		return os.WriteFile(target, []byte(fitted), 0o644)
	})
	return written, err
}

// fit returns a file as a minor has it; keep is false if it has none.
func fit(text, minor string) (fitted string, keep bool, err error) {
	var lines []string
	all := strings.Split(text, "\n")
	for i := 0; i < len(all); i++ {
		line := all[i]
		if !constraint.IsGoBuild(line) {
			lines = append(lines, strings.ReplaceAll(line, ours, theirs))
			continue
		}
		expression, err := constraint.Parse(line)
		if err != nil {
			return "", false, err
		}
		rest, value := settle(expression, tagPrefix+minor)
		switch {
		case rest != nil:
			lines = append(lines, "//go:build "+rest.String())
		case !value:
			return "", false, nil
		case i+1 < len(all) && all[i+1] == "":
			i++ // The empty line that parts a constraint from what follows.
		}
	}
	return strings.Join(lines, "\n"), true, nil
}

// settle works out what a constraint says of minors, when tag is that of the one
// at hand. What is left is rest; if nothing is, value is what it comes to.
func settle(expression constraint.Expr, tag string) (rest constraint.Expr, value bool) {
	switch e := expression.(type) {
	case *constraint.TagExpr:
		if strings.HasPrefix(e.Tag, tagPrefix) {
			return nil, e.Tag == tag
		}
	case *constraint.NotExpr:
		inner, value := settle(e.X, tag)
		if inner == nil {
			return nil, !value
		}
		return &constraint.NotExpr{X: inner}, false
	case *constraint.AndExpr:
		x, left := settle(e.X, tag)
		y, right := settle(e.Y, tag)
		switch {
		case x == nil && !left || y == nil && !right:
			return nil, false
		case x == nil:
			return y, right
		case y == nil:
			return x, left
		}
		return &constraint.AndExpr{X: x, Y: y}, false
	case *constraint.OrExpr:
		x, left := settle(e.X, tag)
		y, right := settle(e.Y, tag)
		switch {
		case x == nil && left || y == nil && right:
			return nil, true
		case x == nil:
			return y, right
		case y == nil:
			return x, left
		}
		return &constraint.OrExpr{X: x, Y: y}, false
	}
	return expression, false
}
