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

package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	// The project's own gates are known, too.
	_ "github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction"
)

// document is one configuration file: what it sets, and in which lines.
type document struct {
	// name for messages: the path as it was given.
	name string
	// set is what the file says, field by field.
	set map[string]any
	// lines of fields and of the keys in them, by path: "evictionHard",
	// "evictionHard/memory.available".
	lines map[string]int
	// faults are findings about the file itself.
	faults []Finding
}

// sizeLimit is more than any kubelet's configuration.
const sizeLimit = 1 << 20

// parseDocument reads a KubeletConfiguration, YAML or JSON, as far as the kubelet
// takes it: unknown fields are findings, what cannot be decoded is an error that
// names line and field.
func parseDocument(name string, data []byte) (*document, error) {
	d := &document{name: name, lines: map[string]int{}}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, fmt.Errorf("%s: the file is empty, and the kubelet refuses it", name)
	}
	if len(data) > sizeLimit {
		return nil, fmt.Errorf("%s: %d bytes are no kubelet's configuration", name, len(data))
	}
	if err := d.readLines(data); err != nil {
		return nil, err
	}
	text, err := sigsyaml.YAMLToJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := json.Unmarshal(text, &d.set); err != nil || d.set == nil {
		return nil, fmt.Errorf("%s: not a KubeletConfiguration, but %s", name, kindOf(text))
	}
	if _, err := sigsyaml.YAMLToJSONStrict(data); err != nil {
		d.fault(RuleLenientDecoding, "", duplicateText(err), "remove one of them; the last counts")
	}
	if kind, version := fmt.Sprint(d.set["kind"]), fmt.Sprint(d.set["apiVersion"]); kind != "KubeletConfiguration" || version != kubeletconfigv1beta1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("%s: kind %s of %s; a KubeletConfiguration of %s is wanted%s", name, kind, version, kubeletconfigv1beta1.SchemeGroupVersion, wrapperHint(kind))
	}
	if err := d.checkTypes(text); err != nil {
		return nil, err
	}
	d.checkGates()
	return d, nil
}

// wrapperHint helps with the resources that hold a KubeletConfiguration.
func wrapperHint(kind string) string {
	switch kind {
	case "KubeletConfig":
		return ", which OpenShift writes from spec.kubeletConfig: give the node's own file, or --node"
	case "InitConfiguration", "ClusterConfiguration", "JoinConfiguration":
		return ": it is another document of kubeadm's file"
	}
	return ""
}

func kindOf(text []byte) string {
	if len(text) > 40 {
		text = append(text[:40:40], "..."...)
	}
	return string(text)
}

// readLines finds the line of each field.
func (d *document) readLines(data []byte) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var root yaml.Node
	if err := decoder.Decode(&root); err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	var next yaml.Node
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) && (err != nil || len(next.Content) > 0) {
		return fmt.Errorf("%s: there is a second document in it, which the kubelet does not read", d.name)
	}
	if len(root.Content) == 1 {
		d.walk(root.Content[0], "", 0)
	}
	return nil
}

// deepest is how far fields are nested, and more.
const deepest = 8

func (d *document) walk(node *yaml.Node, path string, depth int) {
	if node.Kind != yaml.MappingNode || depth > deepest {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		at := path + key.Value
		d.lines[at] = key.Line
		d.walk(node.Content[i+1], at+"/", depth+1)
	}
}

// where names a place in the file: "kubelet.yaml:12".
func (d *document) where(path string) string {
	if line, found := d.lines[path]; found {
		return fmt.Sprintf("%s:%d", d.name, line)
	}
	return d.name
}

func (d *document) fault(rule, path, problem, fix string) {
	d.faults = append(d.faults, finding(rule, "", d.where(path), problem, fix))
}

var (
	quotedField = regexp.MustCompile(`field "([^"]+)"`)
	wrongType   = regexp.MustCompile(`cannot unmarshal (\S+) into Go struct field \S*?\.?KubeletConfiguration\.(\S+) of type (\S+)`)
	firstLine   = regexp.MustCompile(`line (\d+): .*`)
)

func duplicateText(err error) string {
	if line := firstLine.FindString(err.Error()); line != "" {
		return line
	}
	return err.Error()
}

// checkTypes decodes as the kubelet does: strictly at first, and where that fails
// leniently. Names of fields are case-sensitive.
func (d *document) checkTypes(text []byte) error {
	strictly, err := kjson.UnmarshalStrict(text, new(kubeletconfigv1beta1.KubeletConfiguration))
	if err != nil {
		if m := wrongType.FindStringSubmatch(err.Error()); m != nil {
			return fmt.Errorf("%s: %s: a %s is written where %s is wanted", d.where(strings.ReplaceAll(m[2], ".", "/")), m[2], m[1], m[3])
		}
		return d.blame(err)
	}
	for _, fault := range strictly {
		path := ""
		if m := quotedField.FindStringSubmatch(fault.Error()); m != nil {
			path = strings.ReplaceAll(m[1], ".", "/")
		}
		d.fault(RuleLenientDecoding, path, fault.Error(), "correct or remove it; see the reference of KubeletConfiguration")
	}
	return nil
}

// blame finds out in which field the error is, where it does not say so itself, as
// that of a duration does not.
func (d *document) blame(err error) error {
	for _, field := range slices.Sorted(maps.Keys(d.set)) {
		text, marshalErr := json.Marshal(map[string]any{field: d.set[field]})
		if marshalErr == nil {
			if own := kjson.UnmarshalCaseSensitivePreserveInts(text, new(kubeletconfigv1beta1.KubeletConfiguration)); own != nil {
				return fmt.Errorf("%s: %s: %w", d.where(field), field, own)
			}
		}
	}
	return fmt.Errorf("%s: %w", d.name, err)
}

// checkGates takes gates out that the kubelet would not start with. It must come
// before upstream's defaulting, which panics on them.
func (d *document) checkGates() {
	gates, _ := d.set["featureGates"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		on, _ := gates[name].(bool) // null is decoded as false
		if err := utilfeature.DefaultMutableFeatureGate.DeepCopy().SetFromMap(map[string]bool{name: on}); err != nil {
			d.fault(RuleFeatureGate, "featureGates/"+name, fmt.Sprintf("featureGates: %s: %v: %v", name, on, err), "remove it, or correct its name")
			delete(gates, name)
		}
	}
}

// json writes what is set, without what checkGates took out.
func (d *document) json() ([]byte, error) {
	return json.Marshal(d.set)
}
