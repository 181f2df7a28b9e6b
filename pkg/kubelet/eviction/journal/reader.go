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
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// LineError is a line that is no record, or not one that this version can read.
type LineError struct {
	// Line counts from 1.
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

// Faults of lines.
var (
	// ErrForeign: the line is JSON, but not of a journal.
	ErrForeign = errors.New("no record of an eviction journal: it has no version v")
	// ErrTruncated: the last line ends in the middle, which is normal while the
	// journal is written.
	ErrTruncated = errors.New("the last record is cut off")
)

// VersionError is a record of a later schema.
type VersionError struct{ Found int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the record has version %d of the schema and this program knows versions up to %d; use a kubectl-eviction that is as new as the kubelet", e.Found, Version)
}

// Decode reads one line.
func Decode(line []byte) (*Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		// A later schema may have changed what the fields hold.
		var version struct {
			V int `json:"v"`
		}
		if json.Unmarshal(line, &version) == nil && version.V > Version {
			return nil, &VersionError{Found: version.V}
		}
		return nil, explain(line, err)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	return &r, nil
}

func (r *Record) check() error {
	switch {
	case r.Version == 0:
		return ErrForeign
	case r.Version > Version || r.Version < 0:
		return &VersionError{Found: r.Version}
	case r.Kind == KindConfig && r.Config == nil:
		return errors.New("a record of kind config has no config")
	case r.Kind == KindOutcome && r.Outcome == nil:
		return errors.New("a record of kind outcome has no outcome")
	}
	return nil
}

// explain names the field and the place of what is wrong.
func explain(line []byte, err error) error {
	var syntax *json.SyntaxError
	var field *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at column %d of %d: %w", syntax.Offset, len(line), err)
	case errors.As(err, &field):
		return fmt.Errorf("field %s at column %d: a %s where a %s belongs", field.Field, field.Offset, field.Value, field.Type)
	}
	return err
}

// longest is the longest line that is read: a pass of ten thousand pods.
const longest = 64 << 20

// Lines reads a journal line by line, in memory that does not grow with it. It is
// for one goroutine.
type Lines struct {
	from *bufio.Reader
	line int
	text []byte
}

// NewLines reads from a journal.
func NewLines(from io.Reader) *Lines {
	return &Lines{from: bufio.NewReaderSize(from, 1<<16)}
}

// Next returns the next line that is not blank, without its end, and its number;
// the line is good until the next call. At the end it returns io.EOF; whole is
// false for a last line without an end.
func (l *Lines) Next() (text []byte, number int, whole bool, err error) {
	for {
		l.text = l.text[:0]
		l.line++
		for {
			part, err := l.from.ReadSlice('\n')
			l.text = append(l.text, part...)
			if len(l.text) > longest {
				return nil, l.line, false, &LineError{l.line, fmt.Errorf("the line is longer than %d MiB; this is no journal", longest>>20)}
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if trimmed := bytes.TrimSpace(l.text); errors.Is(err, io.EOF) && len(trimmed) > 0 {
				return trimmed, l.line, false, nil
			}
			return nil, l.line, false, err
		}
		if trimmed := bytes.TrimSpace(l.text); len(trimmed) > 0 {
			return trimmed, l.line, true, nil
		}
	}
}

// Read calls each for every record of a journal until it returns an error, which
// Read returns. A record is good until each returns; Keep makes one that stays. A line that cannot be read goes to fault as a *LineError, and
// reading goes on if fault returns nil; a last line that is cut off goes to fault
// with ErrTruncated.
func Read(from io.Reader, each func(*Record) error, fault func(*LineError) error) error {
	lines := NewLines(from)
	var decoder Decoder
	for {
		text, number, whole, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		record, err := decoder.Decode(text)
		if err != nil && !whole {
			err = ErrTruncated
		}
		if err != nil {
			if err := fault(&LineError{number, err}); err != nil {
				return err
			}
			continue
		}
		if err := each(record); err != nil {
			return err
		}
	}
}
