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
// The base is what docker save wrote, or the tarball of a root filesystem,
// compressed or not. With -archive an archive that docker load and kind load
// image-archive take is written as well.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
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
	base, err := openBase(n.base, n.architecture)
	if err != nil {
		return nil, fmt.Errorf("-base %s: %w", n.base, err)
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
	header := &tar.Header{Typeflag: tar.TypeReg, Name: kubeletPath, Mode: 0o755, Size: int64(len(kubelet)), ModTime: n.made}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
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

// openBase reads an image that docker save wrote, or else takes the tarball for a
// root filesystem.
func openBase(path, architecture string) (v1.Image, error) {
	if _, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) }); err == nil {
		return tarball.ImageFromPath(path, nil)
	}
	layer, err := tarball.LayerFromFile(path)
	if err != nil {
		return nil, err
	}
	files, err := layer.Uncompressed()
	if err != nil {
		return nil, err
	}
	defer files.Close()
	if _, err := tar.NewReader(files).Next(); err != nil {
		return nil, fmt.Errorf("neither an image nor the tarball of a filesystem: %w", err)
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
	config.OS, config.Architecture = "linux", architecture
	// As kind's own images start.
	config.Config.Entrypoint = []string{"/usr/local/bin/entrypoint", "/sbin/init"}
	config.Config.StopSignal = "SIGRTMIN+3"
	return mutate.ConfigFile(image, config)
}
