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

// Package apply tries hack/apply on small trees: the files of Kubernetes that it
// looks at, in each of the states that somebody's tree may be in. make test-apply
// tries it on a whole one, and builds it.
package apply

import (
	"bytes"
	"fmt"
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
	"time"
)

const (
	folder  = "pkg/kubelet/eviction"
	touched = "pkg/kubelet/kubelet_pods.go"
	// stamp stays in a patched tree.
	stamp = folder + "/kubelet-eviction.txt"
	gates = "pkg/features/kube_features.go"
)

// repository is the root of this repository; upstream the source of the Kubernetes
// that it is tested with.
func repository(t *testing.T) (root, upstream, minor string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(out))
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
	command.Env = append(os.Environ(), tr.environment...)
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

func TestClone(t *testing.T) {
	t.Parallel()
	tr := newClone(t)
	if err := os.Chmod(filepath.Join(tr.path, touched), 0o755); err != nil {
		t.Fatal(err)
	}
	tr.commit("a mode of its own")
	before := tr.files()
	tr.apply(`can be patched: kubelet-eviction \S+ with [1-9]\d* patches on Kubernetes `+regexp.QuoteMeta(tr.minor), "--check")
	tr.asBefore(before)
	tr.clean()

	tr.apply(`Patched .* files replaced, \d+ added, \d+ removed`)
	for line := range strings.Lines(tr.git("status", "--porcelain", "--ignored")) {
		if !strings.Contains("AMDR", line[:1]) || line[1] != ' ' {
			t.Errorf("git was not told of %s", line)
		}
	}
	if !strings.Contains(tr.read(touched), "eviction.PodIsEvicted") || !strings.Contains(tr.read(stamp), tr.minor) {
		t.Error("patch or stamp is missing")
	}
	if strings.Contains(tr.read(folder+"/manager.go"), "github.com/kubelet-eviction") {
		t.Error("imports have this repository's prefix")
	}
	tr.refused(`patched already: .*--revert puts it back`)

	tr.apply("can be put back", "--revert", "--check")
	tr.apply("Put .* back as it was", "--revert")
	tr.asBefore(before)
	tr.clean()
	tr.refused("has not been patched", "--revert")
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	tr := newClone(t)
	for n := range 2 {
		tr.apply(fmt.Sprintf("with %d patches", n), "--patches", fmt.Sprint(n))
		if patched := strings.Contains(tr.read(touched), "eviction.PodIsEvicted"); patched != (n > 0) {
			t.Errorf("with %d patches the first is applied: %t", n, patched)
		}
		tr.apply("Put .* back", "--revert")
		tr.clean()
	}
	tr.refused("--patches 99: patches/v"+tr.minor+" has", "--patches", "99")
}

// TestPlaces are those where a tree may lie.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T) *tree{
		"a folder without git": func(t *testing.T) *tree { return newTree(t, t.TempDir()) },
		"a path with spaces": func(t *testing.T) *tree {
			tr := newTree(t, filepath.Join(t.TempDir(), "my own fork"))
			tr.git("init", "-q", ".")
			tr.commit("pristine")
			return tr
		},
		"a work tree of a clone": func(t *testing.T) *tree {
			tr := newClone(t)
			path := filepath.Join(t.TempDir(), "other")
			tr.git("worktree", "add", "-q", path)
			tr.path = path
			return tr
		},
		"a folder of a repository, whose other folders may be dirty": func(t *testing.T) *tree {
			outer := &tree{t: t, path: t.TempDir()}
			outer.git("init", "-q", ".")
			tr := newTree(t, filepath.Join(outer.path, "third_party", "kubernetes"))
			outer.commit("everything")
			outer.write("dirt", "not of the tree")
			return tr
		},
		"a folder that a repository ignores": func(t *testing.T) *tree {
			outer := &tree{t: t, path: t.TempDir()}
			outer.git("init", "-q", ".")
			outer.write(".gitignore", "kubernetes\n")
			outer.commit("nothing of it")
			return newTree(t, filepath.Join(outer.path, "kubernetes"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := place(t)
			before := tr.files()
			tr.apply("Patched")
			tr.apply("Put .* back", "--revert")
			tr.asBefore(before)
		})
	}
}

// TestEnvironment is what a user's shell may have set for other work.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"GIT_DIR=/nonexistent", "GIT_INDEX_FILE=/nonexistent/index", "GOFLAGS=-mod=vendor", "GOWORK=/nonexistent/go.work",
		"GOOS=windows", "GOARCH=arm64", "LANG=de_DE.UTF-8",
	} {
		t.Run(setting, func(t *testing.T) {
			tr := newClone(t)
			tr.environment = []string{setting}
			tr.apply("can be patched", "--check")
			tr.clean()
		})
	}
}

// TestUndoneByGit: what git put back is no longer patched, whatever is recorded.
func TestUndoneByGit(t *testing.T) {
	t.Parallel()
	for name, undo := range map[string][][]string{
		"reset":  {{"reset", "-q", "--hard"}},
		"stash":  {{"stash", "-q"}},
		"branch": {{"commit", "-q", "-m", "patched"}, {"checkout", "-q", "HEAD~1"}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newClone(t)
			before := tr.files()
			tr.apply("Patched")
			for _, command := range undo {
				tr.git(command...)
			}
			tr.asBefore(before)
			tr.apply("can be patched", "--check")
			tr.apply("Patched")
			tr.apply("Put .* back", "--revert")
			tr.asBefore(before)
			tr.clean()
			if name == "branch" {
				return
			}
			tr.apply("Patched")
			for _, command := range undo {
				tr.git(command...)
			}
			tr.apply("Put .* back", "--revert")
			tr.clean()
		})
	}
}

// TestCommitted is how a fork carries the patches.
func TestCommitted(t *testing.T) {
	t.Parallel()
	tr := newClone(t)
	before := tr.files()
	tr.apply("Patched")
	tr.commit("Evict in time")
	clone := &tree{t: t, root: tr.root, minor: tr.minor, path: filepath.Join(t.TempDir(), "clone")}
	tr.git("clone", "-q", ".", clone.path)
	short := strings.TrimSpace(clone.git("log", "-1", "--format=%h"))
	clone.refused(`patched already: kubelet-eviction .* git revert ` + short + ` takes it back`)
	clone.refused("cloned since: git revert the commit that brought "+regexp.QuoteMeta(stamp), "--revert")
	clone.git("revert", "--no-edit", short)
	clone.asBefore(before)
	clone.apply("Patched")

	// Where it was done it can be put back as well, and committed.
	tr.apply("Put .* back", "--revert")
	tr.asBefore(before)
	tr.commit("Evict as upstream")
	tr.clean()
}

// TestInterrupted: whatever was done when it ended, it can be put back.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	t.Run("by a kill", func(t *testing.T) {
		tr := newClone(t)
		before := tr.files()
		begin := time.Now()
		tr.apply("Patched")
		whole := time.Since(begin)
		tr.apply("Put .* back", "--revert")
		// Most of it prepares; what changes the tree comes last.
		for part := 50; part <= 100; part += 10 {
			command := tr.command()
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(whole * time.Duration(part) / 100)
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
			_ = command.Wait()
			out, err := tr.command("--revert").CombinedOutput()
			if err != nil && !bytes.Contains(out, []byte("has not been patched")) {
				t.Fatalf("killed after %d %%: %v\n%s", part, err, out)
			}
			tr.asBefore(before)
			// A kill may leave git's own lock.
			_ = os.Remove(filepath.Join(tr.path, ".git", "index.lock"))
			tr.git("reset", "-q")
			tr.clean()
		}
		tr.apply("Patched")
	})
	t.Run("half of the files", func(t *testing.T) {
		tr := newClone(t)
		before := tr.files()
		tr.apply("Patched")
		tr.git("reset", "-q")
		tr.git("checkout", "-q", "--", touched)
		tr.refused("patched in part.*--revert puts it back")
		tr.apply("Put .* back", "--revert")
		tr.asBefore(before)
		tr.clean()
	})
	t.Run("before the record was whole", func(t *testing.T) {
		tr := newClone(t)
		tr.write(".git/kubelet-eviction.part/files", "")
		tr.apply(`Patched .*kubelet-eviction .* patches`)
		tr.apply("Put .* back", "--revert")
		tr.clean()
	})
}

func TestChangedSince(t *testing.T) {
	t.Parallel()
	tr := newClone(t)
	before := tr.files()
	tr.apply("Patched")
	tr.write(folder+"/act/evict.go", "")
	tr.refused("changed since.*--force.*act/evict.go", "--revert")
	tr.apply("Put .* back", "--revert", "--force")
	tr.asBefore(before)
	tr.clean()
}

// TestRefused are trees that do not fit.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(tr *tree)
		want   string
	}{
		"no source of Kubernetes": {func(tr *tree) { tr.write("go.mod", "module example.com/other\n"); tr.commit("other") }, "no source tree of Kubernetes"},
		"a file of the user's":    {func(tr *tree) { tr.write("stray", "") }, `changes of its own \(1\)`},
		"one that git was told not to show": {func(tr *tree) {
			tr.git("config", "status.showUntrackedFiles", "no")
			tr.write(folder+"/decide/step.go", "package decide\n")
		}, "changes of its own"},
		"more changes than fit into a pipe": {func(tr *tree) {
			for n := range 5000 {
				tr.write(fmt.Sprintf("stray-%d-%s", n, strings.Repeat("x", 100)), "")
			}
		}, `changes of its own \(5000\)`},
		"a minor without patches": {func(tr *tree) {
			tr.write("staging/src/k8s.io/component-base/version/base.go", "package version\n\nconst (\n\tDefaultKubeBinaryVersion = \"1.99\"\n)\n")
			tr.commit("master")
		}, `is Kubernetes 1\.99; there are patches for .*--minor`},
		"lines of its own where a patch belongs": {func(tr *tree) {
			tr.write(touched, strings.ReplaceAll(tr.read(touched), "s.Phase", "s.phase"))
			tr.commit("fork")
		}, "0001-.* does not apply.*, which is left as it is"},
		"CR and LF": {func(tr *tree) {
			tr.write(touched, strings.ReplaceAll(tr.read(touched), "\n", "\r\n"))
			tr.commit("checked out on Windows")
		}, "core.autocrlf=false"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newClone(t)
			test.change(tr)
			tr.refused(test.want)
			tr.refused(test.want, "--check")
		})
	}
	t.Run("no git, and changed", func(t *testing.T) {
		tr := newTree(t, t.TempDir())
		tr.write(touched, tr.read(touched)+"\n// Mine.\n")
		tr.refused("git does not keep .*differs from Kubernetes v" + tr.minor + `(?s).*\n` + touched)
	})
	t.Run("the module cache, by another name", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "cache")
		cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(strings.TrimSpace(string(cache)), link); err != nil {
			t.Fatal(err)
		}
		root, upstream, minor := repository(t)
		tr := &tree{t: t, root: root, minor: minor, path: upstream, environment: []string{"GOMODCACHE=" + link}}
		out, err := tr.command("--check").CombinedOutput()
		if err == nil || !bytes.Contains(out, []byte("module cache")) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestFork has changes of its own that are in nobody's way.
func TestFork(t *testing.T) {
	t.Parallel()
	t.Run("lines above what a patch changes", func(t *testing.T) {
		tr := newClone(t)
		tr.write(touched, strings.Replace(tr.read(touched), "package kubelet\n", "package kubelet\n\n// Ours.\n", 1))
		tr.commit("fork")
		before := tr.files()
		tr.apply("Patched")
		if !strings.Contains(tr.read(touched), "// Ours.") {
			t.Error("the fork's lines are gone")
		}
		tr.apply("Put .* back", "--revert")
		tr.asBefore(before)
	})
	t.Run("in the package that is replaced", func(t *testing.T) {
		tr := newClone(t)
		file := folder + "/eviction_manager.go"
		tr.write(file, tr.read(file)+"\n// Ours.\n")
		tr.commit("fork")
		said := "Not as in Kubernetes v" + tr.minor + `\.\d+, and replaced(?s).*` + file
		tr.apply(said, "--check")
		tr.apply(said)
		tr.apply("Put .* back", "--revert")
		tr.clean()
	})
	t.Run("a gate of a later minor", func(t *testing.T) {
		tr := newClone(t)
		tr.write(gates, tr.read(gates)+"\nvar backported = version.MustParse(\"1.99\")\n")
		tr.commit("fork")
		tr.refused("is Kubernetes 1.99")
		tr.apply("Patched", "--minor", tr.minor)
	})
}
