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

// Package lint explains a kubelet's eviction settings: what is in effect, from where
// each value comes, and what in it is hardly meant. It reads files; it does not ask a
// cluster.
package lint

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	kjson "sigs.k8s.io/json"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/threshold"
)

// Config is a kubelet's configuration as it is in effect, and where it comes from.
type Config struct {
	// Kubelet is the effective configuration, with every default.
	Kubelet *kubeletconfigv1beta1.KubeletConfiguration
	// base is the file of --config; nil when there is none.
	base *document
	// dropIns are the files of --config-dir, in the order in which they are merged.
	dropIns []*document
	// running: it is what a kubelet says of itself, and no file is known.
	running bool
	// defaults are the default thresholds of the node's operating system.
	defaults map[string]string
	faults   []Finding
}

// dropInExtension is that of the files which the kubelet takes from its drop-in
// directory (Kubernetes v1.37.2).
const dropInExtension = ".conf"

// Files are what the kubelet is given.
type Files struct {
	// Config is the file of --config, Directory that of --config-dir; either may be
	// empty.
	Config, Directory string
	// OS of the node, linux or windows, which have different defaults.
	OS string
	// Read reads a file; nil means the disk.
	Read func(string) ([]byte, error)
}

// defaultHard is evictionHard where the configuration has none, by the node's
// operating system, which need not be the one that this runs on (upstream v1.37.2).
var defaultHard = map[string]map[string]string{
	"linux": {
		"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%",
		"imagefs.available": "15%", "imagefs.inodesFree": "5%",
	},
	"windows": {"memory.available": "500Mi", "nodefs.available": "10%", "imagefs.available": "15%"},
}

// Load reads a configuration as the kubelet does.
func Load(files Files) (*Config, error) {
	defaults, known := defaultHard[files.OS]
	if !known {
		return nil, fmt.Errorf("operating system %q: it must be one of linux, windows", files.OS)
	}
	file, directory, read := files.Config, files.Directory, files.Read
	if read == nil {
		read = os.ReadFile
	}
	c := &Config{defaults: defaults}
	config := &kubeletconfigv1beta1.KubeletConfiguration{}
	if file != "" {
		var err error
		if c.base, err = readDocument(file, read); err != nil {
			return nil, err
		}
		if err := c.base.decode(config); err != nil {
			return nil, err
		}
		withDefaultThresholds(config, defaults)
	}
	if err := setDefaults(config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if directory == "" {
		c.Kubelet = config
		return c, nil
	}
	merged, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		case filepath.Ext(entry.Name()) != dropInExtension:
			c.faults = append(c.faults, finding(RuleSkippedDropIn, "", path, "the kubelet reads only files that end in "+dropInExtension, "rename it, or move it elsewhere"))
			return nil
		}
		dropIn, err := readDocument(path, read)
		if err != nil {
			return err
		}
		c.dropIns = append(c.dropIns, dropIn)
		text, err := dropIn.json()
		if err != nil {
			return err
		}
		merged, err = jsonpatch.MergePatch(merged, text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("merging %s: %w", directory, err)
	}
	c.Kubelet = &kubeletconfigv1beta1.KubeletConfiguration{}
	if err := json.Unmarshal(merged, c.Kubelet); err != nil {
		return nil, fmt.Errorf("merging %s: %w", directory, err)
	}
	if err := setDefaults(c.Kubelet); err != nil {
		return nil, fmt.Errorf("merging %s: %w", directory, err)
	}
	return c, nil
}

// setDefaults fills in upstream's defaults, which panics when gates that are good one
// by one are not so together.
func setDefaults(config *kubeletconfigv1beta1.KubeletConfiguration) error {
	if err := utilfeature.DefaultMutableFeatureGate.DeepCopy().SetFromMap(config.FeatureGates); err != nil {
		return fmt.Errorf("featureGates: %w", err)
	}
	v1beta1.SetDefaults_KubeletConfiguration(config)
	return nil
}

// withDefaultThresholds adds the default thresholds as the kubelet does: to a file
// that has none, or that asks for it. It does so before drop-ins are merged, and
// without a file not at all.
func withDefaultThresholds(config *kubeletconfigv1beta1.KubeletConfiguration, defaults map[string]string) {
	switch {
	case config.EvictionHard == nil:
		config.EvictionHard = maps.Clone(defaults)
	case config.MergeDefaultEvictionSettings != nil && *config.MergeDefaultEvictionSettings:
		for signal, text := range defaults {
			if _, written := config.EvictionHard[signal]; !written {
				config.EvictionHard[signal] = text
			}
		}
	}
}

// FromConfigz takes the answer of a kubelet to /configz.
func FromConfigz(node string, answer []byte) (*Config, error) {
	var configz struct {
		Kubelet json.RawMessage `json:"kubeletconfig"`
	}
	err := json.Unmarshal(answer, &configz)
	if err == nil && configz.Kubelet == nil {
		err = fmt.Errorf("no kubeletconfig in it")
	}
	c := &Config{Kubelet: &kubeletconfigv1beta1.KubeletConfiguration{}, running: true}
	if err == nil {
		err = json.Unmarshal(configz.Kubelet, c.Kubelet)
	}
	if err != nil {
		return nil, fmt.Errorf("node %s: /configz: %w", node, err)
	}
	// Its gates are those of its own version, and defaulting would trip over them.
	gates := c.Kubelet.FeatureGates
	c.Kubelet.FeatureGates = nil
	v1beta1.SetDefaults_KubeletConfiguration(c.Kubelet)
	c.Kubelet.FeatureGates = gates
	return c, nil
}

func readDocument(path string, read func(string) ([]byte, error)) (*document, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return parseDocument(path, data)
}

func (d *document) decode(into *kubeletconfigv1beta1.KubeletConfiguration) error {
	text, err := d.json()
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.name, err)
	}
	return nil
}

// Origin says where a value comes from.
type Origin string

// The origins.
const (
	// FromFile: it is written in a file.
	FromFile Origin = "file"
	// FromDefault: nothing is written, and this is what the kubelet takes.
	FromDefault Origin = "default"
	// FromMerge: the default of a key, beside other keys that are written.
	FromMerge Origin = "merged"
	// Derived: the kubelet makes it of another value.
	Derived Origin = "derived"
	// FromKubelet: the kubelet says so, and not where it has it from.
	FromKubelet Origin = "kubelet"
)

// Value is one setting in effect.
type Value struct {
	Setting string `json:"setting"`
	// Signal, or another key of a setting that is a map.
	Signal string `json:"signal,omitempty"`
	Value  string `json:"value"`
	// Amount is the value in absolute numbers, where the capacity is known.
	Amount string `json:"amount,omitempty"`
	Origin Origin `json:"origin"`
	// Where is the file and the line, or what it is derived from.
	Where string `json:"where,omitempty"`
}

// documents are all files, the one that counts most first.
func (c *Config) documents() []*document {
	all := slices.Clone(c.dropIns)
	slices.Reverse(all)
	if c.base != nil {
		all = append(all, c.base)
	}
	return all
}

// whereSet returns the document that sets a field, or a key of it; nil when none does.
func (c *Config) whereSet(setting, key string) *document {
	for _, d := range c.documents() {
		value, set := d.set[setting]
		if !set || value == nil {
			continue
		}
		if key == "" {
			return d
		}
		if inner, isMap := value.(map[string]any); isMap {
			if text, set := inner[key]; set && text != nil {
				return d
			}
		}
	}
	return nil
}

// where names the place of a key for findings, or of the field when the key is not
// written.
func (c *Config) where(setting, key string) string {
	if d := c.whereSet(setting, key); d != nil {
		return d.where(pathOf(setting, key))
	}
	if d := c.whereSet(setting, ""); d != nil {
		return d.where(setting)
	}
	return ""
}

func pathOf(setting, key string) string {
	if key == "" {
		return setting
	}
	return setting + "/" + key
}

// origin says where a value comes from.
func (c *Config) origin(setting, key string) (Origin, string) {
	if c.running {
		return FromKubelet, ""
	}
	if d := c.whereSet(setting, key); d != nil {
		return FromFile, d.where(pathOf(setting, key))
	}
	if key != "" && c.whereSet(setting, "") != nil {
		return FromMerge, "the default, kept beside " + c.where(setting, "")
	}
	return FromDefault, ""
}

// Settings returns what the kubelet parses.
func (c *Config) Settings() threshold.Settings {
	return threshold.Settings{
		Hard: c.Kubelet.EvictionHard, Soft: c.Kubelet.EvictionSoft,
		SoftGracePeriod: c.Kubelet.EvictionSoftGracePeriod, MinimumReclaim: c.Kubelet.EvictionMinimumReclaim,
		GuardAllocatable: slices.Contains(c.Kubelet.EnforceNodeAllocatable, "pods"),
		PressureSignals:  c.pressureSignals(),
	}
}

// pressureSignals says whether the signals of EvictionPressureSignals may be used: the
// gate is on, and none that it needs is off.
func (c *Config) pressureSignals() bool {
	off := func(gate string) bool {
		on, given := c.Kubelet.FeatureGates[gate]
		return given && !on
	}
	return c.Kubelet.FeatureGates["EvictionPressureSignals"] && !off("EvictionConcurrentKills") && !off("EvictionEvidence") && !off("EvictionPromptWake")
}
