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

// Package apply tries hack/apply on small trees: the files of Kubernetes that it
// looks at, in each of the states that somebody's tree may be in. make test-apply
// tries it on a whole one, and builds it.
package apply

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

const (
	folder  = "pkg/kubelet/eviction"
	touched = "pkg/kubelet/kubelet_pods.go"
	// stamp stays in a patched tree.
	stamp = folder + "/kubelet-eviction.txt"
	gates = "pkg/features/kube_features.go"
)

func TestClone(t *testing.T) {
	t.Parallel()
	tr := newClone(t)
	for file, mode := range map[string]os.FileMode{
		touched: 0o755, folder + "/eviction_manager.go": 0o755, folder + "/helpers.go": 0o664, "pkg/kubelet": 0o775, folder: 0o700,
	} {
		if err := os.Chmod(filepath.Join(tr.path, file), mode); err != nil {
			t.Fatal(err)
		}
	}
	tr.commit("modes of its own")
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
	for n := range 5 {
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
			status := exec.Command("git", "-C", tr.path, "status", "--porcelain", "--untracked-files=all", "--", ".")
			if out, err := status.Output(); err == nil && regexp.MustCompile(`(?m)^(.[^ ]|\?\?)`).Match(out) {
				t.Errorf("git was not told of everything:\n%s", out)
			}
			tr.apply("Put .* back", "--revert")
			tr.asBefore(before)
		})
	}
}

// TestEnvironment is what a user's shell may have set for other work.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	persistent := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(persistent, []byte("GOFLAGS=-mod=vendor\nGOOS=windows\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{
		"GIT_DIR=/nonexistent", "GIT_INDEX_FILE=/nonexistent/index", "GIT_OBJECT_DIRECTORY=/nonexistent", "GOFLAGS=-mod=vendor",
		"GOWORK=/nonexistent/go.work", "GOOS=windows", "GOENV=" + persistent, "CDPATH=.",
	} {
		t.Run(setting, func(t *testing.T) {
			tr := newClone(t)
			tr.environment = []string{setting}
			tr.apply("Patched")
			tr.apply("Put .* back", "--revert")
			tr.clean()
		})
	}
	t.Run("no Go", func(t *testing.T) {
		tr := newClone(t)
		// What it calls before it asks for Go, and nothing else.
		tools := t.TempDir()
		for _, name := range []string{"bash", "dirname", "git", "grep", "flock", "sha256sum", "cut", "env"} {
			if err := os.Symlink(lookPath(t, name), filepath.Join(tools, name)); err != nil {
				t.Fatal(err)
			}
		}
		tr.environment = []string{"PATH=" + tools}
		tr.refused("go is missing")
		tr.refused("has not been patched", "--revert")
	})
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
			tr.apply("is no longer patched", "--revert")
			tr.clean()
			tr.refused("has not been patched", "--revert")
		})
	}
	t.Run("and gone on", func(t *testing.T) {
		tr := newClone(t)
		tr.apply("Patched")
		tr.git("reset", "-q", "--hard")
		tr.write(touched, strings.Replace(tr.read(touched), "package kubelet\n", "package kubelet\n\n// Pulled.\n", 1))
		tr.commit("pulled")
		tr.apply("can be patched", "--check")
		tr.apply("Patched")
		tr.apply("Put .* back", "--revert")
		tr.clean()
	})
	t.Run("in another work tree", func(t *testing.T) {
		tr := newClone(t)
		tr.apply("Patched")
		tr.git("stash", "-q")
		other := *tr
		other.path = filepath.Join(t.TempDir(), "other")
		tr.git("worktree", "add", "-q", other.path)
		other.git("stash", "pop", "-q")
		other.refused("patched already.*take a fresh copy, or git reset --hard")
	})
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
	clone.refused("was patched elsewhere.*git revert "+short+" takes it back", "--revert")
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
	// A program in place of one that hack/apply calls ends all of it, at a call.
	for name, test := range map[string]struct{ program, at string }{
		"before anything is recorded":        {"cp", `[ "$count" = 1 ]`},
		"when it is recorded":                {"mv", `[ "$count" = 1 ]`},
		"at the first file":                  {"mv", `[ "$count" = 2 ]`},
		"half-way":                           {"mv", `[ "$count" = 40 ]`},
		"when a file is half written":        {"cat", `[ "$count" = 30 ]`},
		"when git has its lock on its index": {"git", `case "$*" in *update-index*) touch "$LOCK";; *) false;; esac`},
	} {
		t.Run("killed "+name, func(t *testing.T) {
			tr := newClone(t)
			before := tr.files()
			shims := t.TempDir()
			lock := filepath.Join(tr.path, ".git", "index.lock")
			script := fmt.Sprintf("#!/bin/bash\nreal=%s\ncount=$(($(wc -c < %[2]s/count) + 1))\nprintf x >> %[2]s/count\nLOCK=%[3]s\nif %[4]s; then kill -KILL 0; fi\nexec \"$real\" \"$@\"\n",
				lookPath(t, test.program), shims, lock, test.at)
			if err := errors.Join(os.WriteFile(filepath.Join(shims, "count"), nil, 0o600), os.WriteFile(filepath.Join(shims, test.program), []byte(script), 0o755)); err != nil {
				t.Fatal(err)
			}
			killed := *tr
			killed.environment = []string{"PATH=" + shims + ":" + os.Getenv("PATH")}
			out, err := killed.command().CombinedOutput()
			if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			if test.program == "git" {
				tr.refused("git is at work", "--revert")
				if err := os.Remove(lock); err != nil {
					t.Fatal(err)
				}
			}
			out, err = tr.command("--revert").CombinedOutput()
			if err != nil && !bytes.Contains(out, []byte("has not been patched")) {
				t.Fatalf("%v\n%s", err, out)
			}
			tr.asBefore(before)
			tr.clean()
			tr.apply("Patched")
			tr.apply("Put .* back", "--revert")
			tr.asBefore(before)
		})
	}
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

func lookPath(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestTogether: two at once do not make one half patched tree.
func TestTogether(t *testing.T) {
	t.Parallel()
	tr := newClone(t)
	before := tr.files()
	first, second := tr.command(), tr.command()
	for _, command := range []*exec.Cmd{first, second} {
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if one, other := first.Wait(), second.Wait(); (one == nil) == (other == nil) {
		t.Errorf("one of two should have done it: %v, %v", one, other)
	}
	tr.apply("Put .* back", "--revert")
	tr.asBefore(before)
	tr.clean()
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
		"a symbolic link": {func(tr *tree) {
			tr.write("elsewhere.go", tr.read(touched))
			if err := errors.Join(os.Remove(filepath.Join(tr.path, touched)), os.Symlink("../../elsewhere.go", filepath.Join(tr.path, touched))); err != nil {
				tr.t.Fatal(err)
			}
			tr.commit("link")
		}, touched + " is a symbolic link"},
		"a file that git overlooks": {func(tr *tree) { tr.git("update-index", "--skip-worktree", touched) }, "overlooks changes of " + touched},
		"git at work":               {func(tr *tree) { tr.write(".git/index.lock", "") }, "git is at work"},
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
			tr.refused("has not been patched|no source tree", "--revert")
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
	t.Run("a file of its own among ours", func(t *testing.T) {
		tr := newClone(t)
		file := folder + "/decide/own.go"
		tr.write(file, "package decide\n")
		tr.commit("fork")
		tr.apply("left in the package(?s).*"+file, "--check")
	})
	t.Run("a gate of a later minor", func(t *testing.T) {
		tr := newClone(t)
		tr.write(gates, tr.read(gates)+"\nvar backported = version.MustParse(\"1.99\")\n")
		tr.commit("fork")
		tr.refused("is Kubernetes 1.99")
		tr.apply("Patched", "--minor", tr.minor)
	})
}
