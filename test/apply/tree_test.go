//go:build unix

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

package apply

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// repository is the root of this repository; upstream the source of the Kubernetes
// that it is tested with.
func repository(t *testing.T) (root, upstream, minor string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "mod", "download", "k8s.io/kubernetes").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(out))
	if len(fields) != 2 {
		t.Fatalf("no source of k8s.io/kubernetes: %q", out)
	}
	parts := strings.Split(fields[1], ".")
	return root, fields[0], strings.TrimPrefix(parts[0], "v") + "." + parts[1]
}

// tree is a Kubernetes tree somewhere.
type tree struct {
	t     *testing.T
	root  string
	minor string
	// path is where it lies; environment is added to that of hack/apply.
	path        string
	environment []string
}

// newTree copies what hack/apply looks at to a folder.
func newTree(t *testing.T, path string) *tree {
	t.Helper()
	root, upstream, minor := repository(t)
	tr := &tree{t: t, root: root, minor: minor, path: path}
	files := []string{"go.mod", gates}
	patches, err := filepath.Glob(filepath.Join(root, "patches", "v"+minor, "*.patch"))
	if err != nil || len(patches) == 0 {
		t.Fatalf("no patches: %v", err)
	}
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^--- a/(.*)$`).FindAllStringSubmatch(string(text), -1) {
			files = append(files, match[1])
		}
	}
	err = filepath.WalkDir(filepath.Join(upstream, folder), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			relative, _ := filepath.Rel(upstream, path)
			files = append(files, relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(upstream, file))
		if err != nil {
			t.Fatal(err)
		}
		tr.write(file, string(text))
	}
	return tr
}

// newClone has git keep such a tree.
func newClone(t *testing.T) *tree {
	t.Helper()
	tr := newTree(t, t.TempDir())
	tr.git("init", "-q", ".")
	tr.commit("pristine")
	return tr
}

func (tr *tree) write(file, text string) {
	tr.t.Helper()
	path := filepath.Join(tr.path, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		tr.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tr.t.Fatal(err)
	}
}

func (tr *tree) read(file string) string {
	tr.t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.path, file))
	if err != nil {
		tr.t.Fatal(err)
	}
	return string(text)
}

func (tr *tree) git(arguments ...string) string {
	tr.t.Helper()
	command := exec.Command("git", arguments...)
	command.Dir = tr.path
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := command.CombinedOutput()
	if err != nil {
		tr.t.Fatalf("git %s: %v\n%s", arguments, err, out)
	}
	return string(out)
}

func (tr *tree) commit(message string) {
	tr.t.Helper()
	tr.git("add", "--all", "--force")
	tr.git("commit", "-q", "-m", message)
}

func (tr *tree) command(arguments ...string) *exec.Cmd {
	command := exec.Command(filepath.Join(tr.root, "hack", "apply"), append(arguments, tr.path)...)
	command.Dir = tr.t.TempDir()
	command.Env = append(append(os.Environ(), "TMPDIR="+tr.t.TempDir()), tr.environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command
}

// apply runs hack/apply, which must do it and say so.
func (tr *tree) apply(want string, arguments ...string) {
	tr.t.Helper()
	out, err := tr.command(arguments...).CombinedOutput()
	if err != nil || !regexp.MustCompile(want).Match(out) {
		tr.t.Fatalf("hack/apply %s: %v, want %q:\n%s", arguments, err, want, out)
	}
}

// refused runs hack/apply, which must not do it, say why, and change nothing.
func (tr *tree) refused(want string, arguments ...string) {
	tr.t.Helper()
	before := tr.files()
	out, err := tr.command(arguments...).CombinedOutput()
	if err == nil || !regexp.MustCompile(want).Match(out) {
		tr.t.Fatalf("hack/apply %s: %v, want a refusal with %q:\n%s", arguments, err, want, out)
	}
	if after := tr.files(); !maps.Equal(before, after) {
		tr.t.Errorf("hack/apply %s was refused, and changed the tree", arguments)
	}
}

// files are the tree's files with their modes, without git's own.
func (tr *tree) files() map[string]string {
	tr.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(tr.path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".git" {
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(tr.path, path)
		found[relative] = info.Mode().String()
		if !entry.IsDir() {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			found[relative] += " " + string(text)
		}
		return nil
	})
	if err != nil {
		tr.t.Fatal(err)
	}
	return found
}

// asBefore holds the tree to what it was.
func (tr *tree) asBefore(before map[string]string) {
	tr.t.Helper()
	after := tr.files()
	for _, file := range slices.Sorted(maps.Keys(after)) {
		if before[file] != after[file] {
			tr.t.Errorf("%s is not as it was", file)
		}
	}
	for file := range before {
		if _, ok := after[file]; !ok {
			tr.t.Errorf("%s is gone", file)
		}
	}
}

// clean holds git to see no change.
func (tr *tree) clean() {
	tr.t.Helper()
	if changes := tr.git("status", "--porcelain", "--ignored"); changes != "" {
		tr.t.Errorf("git sees changes:\n%s", changes)
	}
}
