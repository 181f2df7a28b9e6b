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
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
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
func rootFilesystem(t *testing.T, more map[string]string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	files := map[string]string{"./etc/os-release": "ID=debian\n", "./" + kubeletPath: "the base's"}
	maps.Copy(files, more)
	for name, text := range files {
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

// compressed is a file by gzip.
func compressed(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "compressed.tar.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// archived is an image as an archive of its OCI layout.
func archived(t *testing.T, saved string) string {
	t.Helper()
	image, err := tarball.ImageFromPath(saved, nil)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "layout.tar")
	file, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(file)
	if err := errors.Join(w.AddFS(os.DirFS(folder)), w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return archive
}

// kubeletFor writes what a kubelet begins with: the header of a program.
func kubeletFor(t *testing.T, machine elf.Machine) (path, text string) {
	t.Helper()
	var packed bytes.Buffer
	header := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64}
	copy(header.Ident[:], elf.ELFMAG)
	header.Ident[elf.EI_CLASS], header.Ident[elf.EI_DATA], header.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	if err := binary.Write(&packed, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "kubelet")
	if err := os.WriteFile(path, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, packed.String()
}

// made builds an image layout and reads it again.
func made(t *testing.T, base, kubelet string) (v1.Image, v1.Hash) {
	t.Helper()
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
	rootfs := rootFilesystem(t, nil)
	image := saved(t, rootfs)
	for _, test := range []struct {
		name, base, architecture string
		machine                  elf.Machine
		kept                     string
	}{
		{"over a root filesystem", rootfs, "amd64", elf.EM_X86_64, ""},
		{"over one that is compressed", compressed(t, rootfs), "amd64", elf.EM_X86_64, ""},
		{"over one of kind", rootFilesystem(t, map[string]string{"./kind/version": "v1.37.0\n"}), "amd64", elf.EM_X86_64, ""},
		{"over an image", image, "arm64", elf.EM_AARCH64, "yes"},
		{"over one that is compressed", compressed(t, image), "arm64", elf.EM_AARCH64, "yes"},
		{"over an archive of a layout", archived(t, image), "arm64", elf.EM_AARCH64, "yes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kubelet, ours := kubeletFor(t, test.machine)
			image, digest := made(t, test.base, kubelet)
			if _, again := made(t, test.base, kubelet); again != digest {
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
				seen[strings.TrimPrefix(header.Name, "./")] = string(text)
				if header.Name == kubeletPath && (header.Mode != 0o755 || header.Uid != 0 || header.ModTime.Unix() != 1_700_000_000) {
					t.Errorf("mode %o, owner %d, time %s", header.Mode, header.Uid, header.ModTime)
				}
			}
			if seen[kubeletPath] != ours || seen["etc/os-release"] != "ID=debian\n" {
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
	text := filepath.Join(t.TempDir(), "compressed.tar.xz")
	if err := os.WriteFile(text, []byte("\xfd7zXZ\x00 and so on"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.tar")
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "README", Mode: 0o600}), w.Close(), os.WriteFile(other, packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	rootfs := rootFilesystem(t, nil)
	amd64, _ := kubeletFor(t, elf.EM_X86_64)
	good := node{base: rootfs, kubelet: amd64, version: version, architecture: "amd64"}
	for name, test := range map[string]struct {
		change func(*node, *string)
		want   string
	}{
		"a base that is no tarball":           {func(n *node, _ *string) { n.base = noTarball }, "no tarball"},
		"a base that is compressed otherwise": {func(n *node, _ *string) { n.base = text }, "not one compressed by gzip"},
		"a base that is not there":            {func(n *node, _ *string) { n.base += ".none" }, "no such file"},
		"a tarball of something else":         {func(n *node, _ *string) { n.base = other }, "neither an image nor the tarball of a node"},
		"a kubelet that is not there":         {func(n *node, _ *string) { n.kubelet += ".none" }, "no such file"},
		"a kubelet that is no program":        {func(n *node, _ *string) { n.kubelet = noTarball }, "bad magic number"},
		"a kubelet of another architecture":   {func(n *node, _ *string) { n.kubelet, _ = kubeletFor(t, elf.EM_AARCH64) }, "built for arm64 .*the base is for amd64"},
		"an image of another architecture":    {func(n *node, _ *string) { n.base = saved(t, rootfs) }, "built for amd64 .*the base is for arm64"},
		"a node of another minor":             {func(n *node, _ *string) { n.base = rootFilesystem(t, map[string]string{"./kind/version": "v1.35.4"}) }, "of Kubernetes v1.37, and the base is of v1.35: build it with K8S=1.35"},
		"no version":                          {func(n *node, _ *string) { n.version = "" }, "-version"},
		"a folder that exists":                {func(_ *node, to *string) { *to = t.TempDir() }, "exists already"},
	} {
		t.Run(name, func(t *testing.T) {
			n, to := good, filepath.Join(t.TempDir(), "layout")
			test.change(&n, &to)
			if err := run(n, to, "", "kindest/node:eviction"); err == nil || !regexp.MustCompile(test.want).MatchString(err.Error()) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
