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

// Command images makes the container images of a sandboxed node out of files on
// this machine, and serves them as a registry on a loopback address, since the
// node reaches no other:
//
//	images -bin FOLDER -listen 127.0.0.1:5000 [-ballast]
//
// It prints "serving" when all of them can be pulled, and runs until it is
// killed. Names and tags are those of upstream's test images, so that its node
// e2e suite finds them (test/utils/image/manifest.go, Kubernetes v1.37.2).
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// image says what an image holds.
type image struct {
	// repository and tag, without the registry's host.
	name string
	// program is a file of the folder with binaries, and where it goes.
	program, path string
	// shell adds busybox with all its applets.
	shell      bool
	entrypoint []string
	cmd        []string
	user       string
	// ballast adds that many MiB which do not compress, and files that many empty
	// ones; an image that has either is made only when it is asked for.
	ballast, files int
}

var images = []image{
	{name: "pause:3.10.2", program: "pause", path: "pause", entrypoint: []string{"/pause"}, user: "65535:65535"},
	{name: "e2e-test-images/busybox:1.37.0-2", shell: true, cmd: []string{"sh"}},
	{name: "e2e-test-images/agnhost:2.66.1", program: "agnhost", path: "agnhost", shell: true, entrypoint: []string{"/agnhost"}, cmd: []string{"pause"}},
	{name: "local/hog:1", program: "hog", path: "hog", shell: true, entrypoint: []string{"/hog"}},
	// For the reclaim of images.
	{name: "local/ballast-1:1", ballast: 80}, {name: "local/ballast-2:1", ballast: 80}, {name: "local/ballast-3:1", ballast: 80},
	{name: "local/files:1", files: 100_000},
}

func main() {
	bin := flag.String("bin", "", "folder with the programs that go into the images")
	listen := flag.String("listen", "127.0.0.1:5000", "address of the registry")
	ballast := flag.Bool("ballast", false, "make the images that are there to be large, which takes seconds")
	flag.Parse()
	if err := run(*bin, *listen, *ballast); err != nil {
		log.Fatal("images: ", err)
	}
}

func run(bin, listen string, ballast bool) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		failed <- http.Serve(listener, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	}()
	for _, image := range images {
		if image.ballast+image.files > 0 && !ballast {
			continue
		}
		built, err := image.build(bin)
		if errors.Is(err, fs.ErrNotExist) {
			// Not every node needs every image; what is missing cannot be pulled.
			fmt.Printf("left out %s: %v\n", image.name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", image.name, err)
		}
		tag, err := name.NewTag(listen+"/"+image.name, name.Insecure)
		if err != nil {
			return err
		}
		if err := remote.Write(tag, built); err != nil {
			return fmt.Errorf("%s: %w", image.name, err)
		}
	}
	fmt.Println("serving")
	return <-failed
}

func (i image) build(bin string) (v1.Image, error) {
	var layer bytes.Buffer
	files := tar.NewWriter(&layer)
	if i.program != "" {
		if err := addFile(files, filepath.Join(bin, i.program), i.path); err != nil {
			return nil, err
		}
	}
	if i.shell {
		if err := addShell(files); err != nil {
			return nil, err
		}
	}
	if i.ballast > 0 {
		if err := addBallast(files, i.name, i.ballast); err != nil {
			return nil, err
		}
	}
	for n := range i.files {
		if err := files.WriteHeader(&tar.Header{Name: fmt.Sprintf("files/%d/%d", n/1000, n), Typeflag: tar.TypeReg, Mode: 0o644}); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	content, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	built, err := mutate.AppendLayers(empty.Image, content)
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config = v1.Config{Env: []string{"PATH=/bin:/"}, Entrypoint: i.entrypoint, Cmd: i.cmd, User: i.user}
	return mutate.ConfigFile(built, config)
}

func addFile(files *tar.Writer, from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := files.WriteHeader(&tar.Header{Name: to, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = files.Write(content)
	return err
}

// addBallast adds a file of random content, the same for a name each time.
func addBallast(files *tar.Writer, name string, mebibytes int) error {
	size := int64(mebibytes) << 20
	if err := files.WriteHeader(&tar.Header{Name: "ballast", Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
		return err
	}
	var seed [32]byte
	copy(seed[:], name)
	_, err := io.CopyN(files, rand.NewChaCha8(seed), size)
	return err
}

// addShell adds Debian's static busybox under the name of each of its applets.
func addShell(files *tar.Writer) error {
	const busybox = "/bin/busybox"
	for _, folder := range []struct {
		name string
		mode int64
	}{{"bin/", 0o755}, {"tmp/", 0o1777}, {"etc/", 0o755}, {"var/", 0o755}} {
		if err := files.WriteHeader(&tar.Header{Name: folder.name, Typeflag: tar.TypeDir, Mode: folder.mode}); err != nil {
			return err
		}
	}
	if err := addFile(files, busybox, "bin/busybox"); err != nil {
		return err
	}
	applets, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return err
	}
	for _, applet := range strings.Fields(string(applets)) {
		if applet == "busybox" {
			continue
		}
		if err := files.WriteHeader(&tar.Header{Name: "bin/" + applet, Typeflag: tar.TypeSymlink, Linkname: "busybox", Mode: 0o777}); err != nil {
			return err
		}
	}
	return nil
}
