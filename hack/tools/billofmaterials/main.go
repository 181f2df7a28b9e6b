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

// Billofmaterials makes a bill of materials that cyclonedx-gomod has written the
// same wherever it was written:
//
//	billofmaterials -epoch SECONDS FILE
//
// The tool's own sums go, which depend on the machine that it was built on, and the
// time becomes that of the commit. A bill that lists no modules is refused.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	epoch := flag.Int64("epoch", 0, "time that the bill bears, in seconds since 1970")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := rewrite(flag.Arg(0), time.Unix(*epoch, 0).UTC()); err != nil {
		fmt.Fprintf(os.Stderr, "billofmaterials: %s: %v\n", flag.Arg(0), err)
		os.Exit(1)
	}
}

func rewrite(path string, made time.Time) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	steadied, err := steady(text, made)
	if err != nil {
		return err
	}
	return os.WriteFile(path, steadied, 0o644)
}

// steady returns a bill of materials in JSON as the same commit always has it.
func steady(text []byte, made time.Time) ([]byte, error) {
	var bill cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(text), cdx.BOMFileFormatJSON).Decode(&bill); err != nil {
		return nil, err
	}
	if bill.Metadata == nil || bill.Metadata.Component == nil || bill.Components == nil || len(*bill.Components) == 0 {
		return nil, errors.New("it lists no modules; was it made of a Go binary?")
	}
	bill.SerialNumber = ""
	bill.Metadata.Timestamp = made.Format(time.RFC3339)
	if tools := bill.Metadata.Tools; tools != nil {
		if tools.Components != nil {
			for i := range *tools.Components {
				(*tools.Components)[i].Hashes = nil
			}
		}
		if tools.Tools != nil { // As versions of the format before 1.5 have them.
			for i := range *tools.Tools {
				(*tools.Tools)[i].Hashes = nil
			}
		}
	}
	var written bytes.Buffer
	encoder := cdx.NewBOMEncoder(&written, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(&bill, bill.SpecVersion); err != nil {
		return nil, err
	}
	return written.Bytes(), nil
}
