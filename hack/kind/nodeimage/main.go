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

// Nodeimage puts a kubelet into a node image where there is no Docker, and writes
// the result as an OCI image layout:
//
//	nodeimage -base TARBALL -kubelet FILE -version VERSION -to FOLDER [-archive FILE -name NAME]
//
// The base is what docker save wrote, an archive of an OCI image layout, or the
// tarball of a node's root filesystem, compressed by gzip or not. The kubelet must be
// built for its architecture, and be of the minor that the base names, if it does.
// With -archive an archive that docker load takes is written as well.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// kubeletPath is where a kind node has its kubelet; its unit names it.
const kubeletPath = "usr/bin/kubelet"

// node says what an image is made of.
type node struct {
	base, kubelet string
	// version of the kubelet, for the labels.
	version      string
	architecture string
	// made is the time that the image bears; it depends on nothing else, so that
	// the same inputs give the same image.
	made time.Time
	// scratch is a folder for what must be unpacked, as long as the image is read.
	scratch string
}

func main() {
	var n node
	var epoch int64
	var to, archive, reference string
	flag.StringVar(&n.base, "base", "", "tarball of the node image")
	flag.StringVar(&n.kubelet, "kubelet", "", "kubelet that goes into it")
	flag.StringVar(&n.version, "version", "", "the kubelet's version")
	flag.StringVar(&n.architecture, "arch", "amd64", "architecture, if the base does not say")
	flag.Int64Var(&epoch, "epoch", 0, "time that the image bears, in seconds since 1970")
	flag.StringVar(&to, "to", "", "folder that gets the OCI image layout; it must not exist")
	flag.StringVar(&archive, "archive", "", "file that gets an archive for docker load")
	flag.StringVar(&reference, "name", "kindest/node:eviction", "name of the image in the archive")
	flag.Parse()
	n.made = time.Unix(epoch, 0).UTC()
	if err := run(n, to, archive, reference); err != nil {
		fmt.Fprintln(os.Stderr, "nodeimage:", err)
		os.Exit(1)
	}
}

func run(n node, to, archive, reference string) error {
	if n.base == "" || n.kubelet == "" || n.version == "" || to == "" {
		return errors.New("-base, -kubelet, -version and -to are needed")
	}
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("-name: %w", err)
	}
	if _, err := os.Stat(to); err == nil {
		return fmt.Errorf("%s exists already; name a folder that does not", to)
	}
	if n.scratch, err = os.MkdirTemp("", "nodeimage-"); err != nil {
		return err
	}
	defer os.RemoveAll(n.scratch)
	image, err := n.image()
	if err != nil {
		return err
	}
	path, err := layout.Write(to, empty.Index)
	if err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag.String()})
	if err := path.AppendImage(image, named); err != nil {
		return fmt.Errorf("%s: %w", to, err)
	}
	if archive != "" {
		if err := tarball.WriteToFile(archive, tag, image); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s with kubelet %s\n", to, digest, n.version)
	return nil
}

// image lays the kubelet over the base.
func (n node) image() (v1.Image, error) {
	base, err := n.openBase()
	if err != nil {
		return nil, fmt.Errorf("-base %s: %w", n.base, err)
	}
	if err := n.fits(base); err != nil {
		return nil, fmt.Errorf("-kubelet %s does not belong into -base %s: %w", n.kubelet, n.base, err)
	}
	layer, err := n.layer()
	if err != nil {
		return nil, fmt.Errorf("-kubelet %s: %w", n.kubelet, err)
	}
	image, err := inOCI(base)
	if err != nil {
		return nil, fmt.Errorf("-base %s: %w", n.base, err)
	}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: n.made}, CreatedBy: "kubelet-eviction nodeimage", Comment: "/" + kubeletPath + " " + n.version},
	})
	if err != nil {
		return nil, err
	}
	found, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := found.DeepCopy()
	config.Created = v1.Time{Time: n.made}
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	config.Config.Labels["org.opencontainers.image.version"] = n.version
	config.Config.Labels["io.kubelet-eviction.version"] = n.version
	return mutate.ConfigFile(image, config)
}

// layer holds the kubelet alone, as root owns it.
func (n node) layer() (v1.Layer, error) {
	kubelet, err := os.ReadFile(n.kubelet)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	// With its folders: what an engine makes of those that are only implied is its own
	// affair.
	for _, header := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "usr/", Mode: 0o755, ModTime: n.made},
		{Typeflag: tar.TypeDir, Name: "usr/bin/", Mode: 0o755, ModTime: n.made},
		{Typeflag: tar.TypeReg, Name: kubeletPath, Mode: 0o755, Size: int64(len(kubelet)), ModTime: n.made},
	} {
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
	}
	if _, err := w.Write(kubelet); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return ociLayer(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil })
}

func ociLayer(open tarball.Opener) (v1.Layer, error) {
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// inOCI gives an image the media types of OCI; what docker save wrote has
// Docker's.
func inOCI(base v1.Image) (v1.Image, error) {
	layers, err := base.Layers()
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, layer := range layers {
		same, err := ociLayer(layer.Uncompressed)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.AppendLayers(image, same); err != nil {
			return nil, err
		}
	}
	config, err := base.ConfigFile()
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, config)
}

// fits compares the kubelet with what the base says of itself.
func (n node) fits(base v1.Image) error {
	config, err := base.ConfigFile()
	if err != nil {
		return err
	}
	file, err := elf.Open(n.kubelet)
	if err != nil {
		return err
	}
	defer file.Close()
	if of := architectures[file.Machine]; of != config.Architecture {
		return fmt.Errorf("it is built for %s (%s), and the base is for %s", of, file.Machine, config.Architecture)
	}
	// kind writes its nodes' version there, with a line end.
	text, err := readFile(base, kindVersionPath)
	if err != nil || text == "" {
		return err
	}
	if of, wanted := minorOf(n.version), minorOf(strings.TrimSpace(text)); of != wanted {
		return fmt.Errorf("it is of Kubernetes %s, and the base is of %s: build it with K8S=%s", of, wanted, strings.TrimPrefix(wanted, "v"))
	}
	return nil
}

// kindVersionPath is where a kind node says its version of Kubernetes.
const kindVersionPath = "kind/version"

// architectures are those that Kubernetes is built for, by the names of images.
var architectures = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x",
}

// minorOf cuts v1.37 from v1.37.2+eviction.0123456789ab.
func minorOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// readFile reads a file of an image; it is empty if there is none.
func readFile(image v1.Image, path string) (string, error) {
	files := mutate.Extract(image)
	defer files.Close()
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if named(header, path) {
			text, err := io.ReadAll(io.LimitReader(r, 1<<10))
			return string(text), err
		}
	}
}

// named compares without the ./ that tar puts before the paths of a folder.
func named(header *tar.Header, path string) bool {
	return strings.TrimPrefix(header.Name, "./") == path
}

// openBase reads an image, or else takes the tarball for a root filesystem.
func (n node) openBase() (v1.Image, error) {
	open := func() (io.ReadCloser, error) { return openUncompressed(n.base) }
	if manifest, err := tarball.LoadManifest(open); err == nil && len(manifest) > 0 {
		return tarball.Image(open, nil)
	}
	files, err := open()
	if err != nil {
		return nil, err
	}
	defer files.Close()
	var isLayout, isNode bool
	for r := tar.NewReader(files); !isLayout && !isNode; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("neither an image nor the tarball of a node's root filesystem, which has a /%s", kubeletPath)
		}
		if err != nil {
			return nil, fmt.Errorf("no tarball, or not one compressed by gzip: %w", err)
		}
		isLayout, isNode = named(header, "oci-layout"), named(header, kubeletPath)
	}
	if isLayout {
		return openLayout(open, n.scratch)
	}
	layer, err := tarball.LayerFromOpener(open)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", n.architecture
	// As kind's own images start.
	config.Config.Entrypoint = []string{"/usr/local/bin/entrypoint", "/sbin/init"}
	config.Config.StopSignal = "SIGRTMIN+3"
	return mutate.ConfigFile(image, config)
}

// openUncompressed opens a tarball, compressed by gzip or not.
func openUncompressed(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	begin := make([]byte, 2)
	_, err = io.ReadFull(file, begin)
	if _, seek := file.Seek(0, io.SeekStart); err != nil || seek != nil {
		return nil, errors.Join(err, seek, file.Close())
	}
	if !bytes.Equal(begin, []byte{0x1f, 0x8b}) {
		return file, nil
	}
	plain, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{plain, file}, nil
}

// openLayout unpacks an archive of an OCI image layout into a folder, from which the
// one image in it is read when it is asked for.
func openLayout(open tarball.Opener, folder string) (v1.Image, error) {
	files, err := open()
	if err != nil {
		return nil, err
	}
	defer files.Close()
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for r := tar.NewReader(files); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		// Nothing is written outside the folder, whatever the archive says.
		name := filepath.Clean(filepath.FromSlash(header.Name))
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return nil, err
		}
		to, err := root.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(to, r); err != nil {
			return nil, errors.Join(err, to.Close())
		}
		if err := to.Close(); err != nil {
			return nil, err
		}
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("a layout of %d images; save one alone", len(manifest.Manifests))
	}
	if !manifest.Manifests[0].MediaType.IsImage() {
		return nil, fmt.Errorf("a layout whose only entry is %s; save the image of one platform, without attestations", manifest.Manifests[0].MediaType)
	}
	return index.Image(manifest.Manifests[0].Digest)
}
