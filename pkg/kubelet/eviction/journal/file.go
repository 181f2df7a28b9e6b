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

package journal

import (
	"fmt"
	"os"
	"path/filepath"

	"gopkg.in/natefinch/lumberjack.v2"
)

// FileName is that of the file which is written; older ones have a time in theirs.
const FileName = "eviction.jsonl"

const (
	// fileSize is when a file is closed: a file of a mebibyte is read in a moment
	// through the API server's proxy.
	fileSize = 1 << 20
	// files are kept: days of a quiet node, an hour of one with a hundred pods that
	// is short of something all the time.
	files = 10
)

// File is a sink in a directory: the file that is written and nine older ones, of
// a mebibyte each. It is for one goroutine.
type File struct {
	log  *lumberjack.Logger
	size int64
	// torn: the file ends in the middle of a line, as one does whose kubelet was killed.
	torn bool
}

// OpenFile makes the sink; the directory is made when the first record is written,
// so that a disk which is full or read-only now may be mended later.
func OpenFile(directory string) *File {
	path := filepath.Join(directory, FileName)
	f := &File{log: &lumberjack.Logger{
		Filename: path, MaxBackups: files - 1,
		// Rotated here, so that every file can begin with the configuration; the
		// library's own bound only keeps it from doing so too: it is the longest line that
		// is read.
		MaxSize: longest >> 20,
	}}
	if file, err := os.Open(path); err == nil {
		defer file.Close()
		if info, err := file.Stat(); err == nil {
			f.size = info.Size()
		}
		last := []byte{'\n'}
		if _, err := file.ReadAt(last, f.size-1); err == nil {
			f.torn = last[0] != '\n'
		}
	}
	return f
}

// Write appends to the file that is written.
func (f *File) Write(text []byte) (int, error) {
	if f.torn {
		text = append([]byte{'\n'}, text...)
		f.torn = false
	}
	n, err := f.log.Write(text)
	f.size += int64(n)
	if err != nil {
		// The library keeps a file open that is gone; the next write opens it anew.
		_ = f.log.Close()
		return n, fmt.Errorf("writing to %s: %w", f.log.Filename, err)
	}
	return n, nil
}

func (f *File) full(bytes int) bool { return f.size > 0 && f.size+int64(bytes) > fileSize }

func (f *File) rotate() error {
	if err := f.log.Rotate(); err != nil {
		return fmt.Errorf("rotating %s: %w", f.log.Filename, err)
	}
	f.size, f.torn = 0, false
	return nil
}

// Close closes the file.
func (f *File) Close() error { return f.log.Close() }

func (f *File) String() string { return f.log.Filename }
