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

package main

import "testing"

func TestFit(t *testing.T) {
	const header = "/* licence */\n\npackage eviction\n"
	for _, test := range []struct {
		name, text, minor, want string
		keep                    bool
	}{
		{"without a constraint", header, "1.36", header, true},
		{"of this minor", "//go:build kubernetes1.36\n\n" + header, "1.36", header, true},
		{"of another", "//go:build kubernetes1.35\n\n" + header, "1.36", "", false},
		{"of either", "//go:build kubernetes1.35 || kubernetes1.36\n\n" + header, "1.36", header, true},
		{"of none of the older", "//go:build !kubernetes1.35 && !kubernetes1.36\n\n" + header, "1.37", header, true},
		{"of a newer", "//go:build !kubernetes1.35 && !kubernetes1.36\n\n" + header, "1.36", "", false},
		{"a platform stays", "//go:build linux\n\n" + header, "1.36", "//go:build linux\n\n" + header, true},
		{"of this minor on a platform", "//go:build !windows && kubernetes1.36\n\n" + header, "1.36", "//go:build !windows\n\n" + header, true},
		{"of another on a platform", "//go:build linux && kubernetes1.35\n\n" + header, "1.36", "", false},
		{"of a platform or a minor", "//go:build linux || kubernetes1.35\n\n" + header, "1.36", "//go:build linux\n\n" + header, true},
		{
			"imports", `import "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/decide"`, "1.36",
			`import "k8s.io/kubernetes/pkg/kubelet/eviction/decide"`, true,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, keep, err := fit(test.text, test.minor)
			if err != nil || got != test.want || keep != test.keep {
				t.Errorf("got %q, kept %v, %v, want %q, kept %v", got, keep, err, test.want, test.keep)
			}
		})
	}
	if _, _, err := fit("//go:build (\n", "1.36"); err == nil {
		t.Error("a constraint that cannot be read is taken")
	}
}
