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

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const version = "v1.37.2+eviction.0123456789ab"

// rootFilesystem writes the tarball of a node that has a kubelet of its own.
func rootFilesystem(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	for name, text := range map[string]string{"etc/os-release": "ID=debian\n", kubeletPath: "the base's"} {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// saved writes an image as docker save does.
func saved(t *testing.T, rootfs string) string {
	t.Helper()
	layer, err := tarball.LayerFromFile(rootfs)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Architecture, config.Config.Labels = "arm64", map[string]string{"kept": "yes"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "saved.tar")
	if err := tarball.WriteToFile(path, name.MustParseReference("kindest/node:v1.37.2"), image); err != nil {
		t.Fatal(err)
	}
	return path
}

// made builds an image layout and reads it again.
func made(t *testing.T, base string) (v1.Image, v1.Hash) {
	t.Helper()
	kubelet := filepath.Join(t.TempDir(), "kubelet")
	if err := os.WriteFile(kubelet, []byte("ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "layout")
	n := node{base: base, kubelet: kubelet, version: version, architecture: "amd64", made: time.Unix(1_700_000_000, 0).UTC()}
	if err := run(n, to, filepath.Join(t.TempDir(), "archive.tar"), "kindest/node:eviction"); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(to)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%+v, %v", manifest, err)
	}
	if got := manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; !strings.HasSuffix(got, "kindest/node:eviction") {
		t.Errorf("the image is called %q", got)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return image, manifest.Manifests[0].Digest
}

func TestKubeletTakesItsPlace(t *testing.T) {
	rootfs := rootFilesystem(t)
	for _, test := range []struct{ name, base, architecture, kept string }{
		{"over a root filesystem", rootfs, "amd64", ""},
		{"over an image", saved(t, rootfs), "arm64", "yes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			image, digest := made(t, test.base)
			if _, again := made(t, test.base); again != digest {
				t.Errorf("built twice: %s and %s", digest, again)
			}
			manifest, err := image.Manifest()
			if err != nil || manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON {
				t.Errorf("the manifest is %+v, %v", manifest, err)
			}
			for _, layer := range manifest.Layers {
				if layer.MediaType != types.OCILayer {
					t.Errorf("a layer is %s", layer.MediaType)
				}
			}
			if err := validate.Image(image); err != nil {
				t.Error(err)
			}
			config, err := image.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			labels := config.Config.Labels
			if config.Architecture != test.architecture || labels["org.opencontainers.image.version"] != version ||
				labels["io.kubelet-eviction.version"] != version || labels["kept"] != test.kept {
				t.Errorf("architecture %s, labels %v", config.Architecture, labels)
			}
			files := mutate.Extract(image)
			defer files.Close()
			seen := map[string]string{}
			for r := tar.NewReader(files); ; {
				header, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(r)
				if err != nil {
					t.Fatal(err)
				}
				seen[header.Name] = string(text)
				if header.Name == kubeletPath && (header.Mode != 0o755 || header.Uid != 0 || header.ModTime.Unix() != 1_700_000_000) {
					t.Errorf("mode %o, owner %d, time %s", header.Mode, header.Uid, header.ModTime)
				}
			}
			if seen[kubeletPath] != "ours" || seen["etc/os-release"] != "ID=debian\n" {
				t.Errorf("the image holds %v", seen)
			}
		})
	}
}

func TestWhatCannotBe(t *testing.T) {
	noTarball := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(noTarball, []byte(strings.Repeat("no tarball ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	good := node{base: rootFilesystem(t), kubelet: noTarball, version: version}
	for name, change := range map[string]func(*node, *string){
		"a base that is no tarball":   func(n *node, _ *string) { n.base = noTarball },
		"a base that is not there":    func(n *node, _ *string) { n.base += ".none" },
		"a kubelet that is not there": func(n *node, _ *string) { n.kubelet += ".none" },
		"no version":                  func(n *node, _ *string) { n.version = "" },
		"a folder that exists":        func(_ *node, to *string) { *to = t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			n, to := good, filepath.Join(t.TempDir(), "layout")
			change(&n, &to)
			if err := run(n, to, "", "kindest/node:eviction"); err == nil {
				t.Error("it is taken")
			}
		})
	}
}
