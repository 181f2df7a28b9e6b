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
	"bytes"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bill is as cyclonedx-gomod writes one, on a machine where the tool has this sum.
func bill(sum, made string) string {
	return `{"bomFormat":"CycloneDX","specVersion":"1.6","serialNumber":"urn:uuid:` + sum + `","version":1,
"metadata":{"timestamp":"` + made + `","tools":[{"vendor":"CycloneDX","name":"cyclonedx-gomod","version":"v1.10.0","hashes":[{"alg":"SHA-256","content":"` + sum + `"}]}],
"component":{"type":"application","name":"k8s.io/kubernetes","version":"v1.37.2+eviction.0123456789ab"}},
"components":[{"type":"library","name":"example.com/<a>","version":"v1.0.0","purl":"pkg:golang/example.com/a@v1.0.0","hashes":[{"alg":"SHA-256","content":"kept"}]}]}`
}

func TestTheSameEverywhere(t *testing.T) {
	made := time.Unix(1_700_000_000, 0).UTC()
	here, err := steady([]byte(bill("aaaa", "2026-11-30T08:00:00Z")), made)
	if err != nil {
		t.Fatal(err)
	}
	there, err := steady([]byte(bill("bbbb", "2026-12-01T09:00:00+14:00")), made)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(here, there) {
		t.Errorf("%s\n\nand\n\n%s", here, there)
	}
	var read cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(here), cdx.BOMFileFormatJSON).Decode(&read); err != nil {
		t.Fatal(err)
	}
	if read.SpecVersion != cdx.SpecVersion1_6 || read.Metadata.Timestamp != "2023-11-14T22:13:20Z" || read.Metadata.Component.Version != "v1.37.2+eviction.0123456789ab" {
		t.Errorf("%s", here)
	}
	if len(*read.Components) != 1 || (*read.Components)[0].Name != "example.com/<a>" || (*(*read.Components)[0].Hashes)[0].Value != "kept" {
		t.Errorf("a module has changed: %s", here)
	}
	if !strings.Contains(string(here), "cyclonedx-gomod") {
		t.Error("the tool's name is gone")
	}
}

func TestRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":    "none",
		"no modules": `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1,"metadata":{"component":{"type":"application","name":"a"}}}`,
		"nothing":    `{"bomFormat":"CycloneDX","specVersion":"1.6","version":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := steady([]byte(text), time.Unix(0, 0)); err == nil {
				t.Errorf("it is taken: %s", got)
			}
		})
	}
}
