//go:build linux

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

package machine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// maxFile bounds what is read of a file: memory.stat has about 4 KiB, and a
// machine with very many processors does not change that.
const maxFile = 64 << 10

// file is one that the kernel fills anew for each reader. It stays open; when a
// read fails, because its cgroup was removed say, it is opened again by its
// path the next time.
type file struct {
	path   string
	open   *os.File
	buffer []byte
}

// read returns the whole content, good until the next read.
func (f *file) read() ([]byte, error) {
	text, err := f.readOnce()
	if err == nil {
		return text, nil
	}
	// What was open may be of a cgroup that is gone, with another in its place.
	f.close()
	return f.readOnce()
}

func (f *file) readOnce() ([]byte, error) {
	if f.open == nil {
		opened, err := os.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.open = opened
	}
	if f.buffer == nil {
		f.buffer = make([]byte, 4<<10)
	}
	for {
		// Each offset counts from the beginning, so this is a fresh read.
		n, err := f.open.ReadAt(f.buffer, 0)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			f.close()
			return nil, err
		case n < len(f.buffer):
			return f.buffer[:n], nil
		case len(f.buffer) >= maxFile:
			return nil, fmt.Errorf("%s has more than %d bytes", f.path, maxFile)
		}
		f.buffer = make([]byte, 2*len(f.buffer))
	}
}

func (f *file) close() {
	if f.open != nil {
		_ = f.open.Close() // only read from
		f.open = nil
	}
}

// number reads a file that holds one number, or a word for none.
func (f *file) number() (int64, error) {
	text, err := f.read()
	if err != nil {
		return 0, err
	}
	n, ok := digits(bytes.TrimSpace(text))
	if !ok {
		return 0, fmt.Errorf("%s holds %.40q, not a number", f.path, text)
	}
	return n, nil
}

// field returns the number after a key at the beginning of a line.
func (f *file) field(key string) (int64, error) {
	text, err := f.read()
	if err != nil {
		return 0, err
	}
	return f.fieldOf(text, key)
}

func (f *file) fieldOf(text []byte, key string) (int64, error) {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) <= len(key) || string(line[:len(key)]) != key || line[len(key)] != ' ' && line[len(key)] != ':' {
			continue
		}
		value := bytes.TrimSpace(line[len(key)+1:])
		if end := bytes.IndexByte(value, ' '); end >= 0 {
			value = value[:end]
		}
		if n, ok := digits(value); ok {
			return n, nil
		}
		return 0, fmt.Errorf("%s: %s is %.40q, not a number", f.path, key, value)
	}
	return 0, fmt.Errorf("%s has no %s", f.path, key)
}

// digits reads a decimal number. One too large for an int64 is the largest: the
// kernel writes "no limit" so.
func digits(text []byte) (int64, bool) {
	if len(text) == 0 {
		return 0, false
	}
	n := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n > (math.MaxInt64-9)/10 {
			return math.MaxInt64, true
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
