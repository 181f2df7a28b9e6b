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

// Package contrib holds the alert rules and the dashboard of contrib/ to the metrics
// that docs/metrics.md lists; test/scenarios holds that list to what a kubelet serves.
// It is a module of its own, since nothing else here needs Prometheus.
package contrib

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile = "../../contrib/prometheus/rules.yaml"
	testsFile = "../../contrib/prometheus/rules_test.yaml"
	docsFile  = "../../docs/metrics.md"
)

// given are the labels that a Prometheus gives to what it scrapes.
var given = []string{"instance", "job", "node"}

// documented reads the table of metrics: the labels of each.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	metrics := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(kubelet_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|").FindAllStringSubmatch(string(text), -1) {
		labels := regexp.MustCompile("[a-z_]+").FindAllString(row[3], -1)
		metrics[row[1]] = labels
		if row[2] == "histogram" {
			metrics[row[1]+"_bucket"] = append(slices.Clone(labels), "le")
			metrics[row[1]+"_sum"], metrics[row[1]+"_count"] = labels, labels
		}
	}
	if len(metrics) < 15 {
		t.Fatalf("%s lists %d metrics", docsFile, len(metrics))
	}
	return metrics
}

// checkQuery looks for metrics and labels that are not there.
func checkQuery(t *testing.T, metrics map[string][]string, query string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	known := slices.Clone(given)
	selected := 0
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		selector, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		selected++
		labels, found := metrics[selector.Name]
		if !found {
			t.Errorf("%s: docs/metrics.md has no %s", query, selector.Name)
		}
		known = append(known, labels...)
		for _, matcher := range selector.LabelMatchers {
			if matcher.Name != model.MetricNameLabel && !slices.Contains(labels, matcher.Name) && !slices.Contains(given, matcher.Name) {
				t.Errorf("%s: %s has no label %s", query, selector.Name, matcher.Name)
			}
		}
		return nil
	})
	if selected == 0 {
		t.Errorf("%s asks for no metric", query)
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregation, is := node.(*parser.AggregateExpr); is {
			for _, label := range aggregation.Grouping {
				if !slices.Contains(known, label) {
					t.Errorf("%s: none of its metrics has a label %s", query, label)
				}
			}
		}
		return nil
	})
}

// TestRules: each rule is one that Prometheus loads, about metrics that there are, and
// its runbook is there too.
func TestRules(t *testing.T) {
	groups, faults := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}))
	for _, fault := range faults {
		t.Error(fault)
	}
	if groups == nil {
		t.Fatal("no rules")
	}
	docs, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	metrics := documented(t)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			checkQuery(t, metrics, rule.Expr)
			for _, name := range regexp.MustCompile(`\$labels\.([a-z_]+)`).FindAllStringSubmatch(rule.Annotations["description"], -1) {
				if name[1] != "instance" && name[1] != "eviction_signal" {
					t.Errorf("%s: its description asks for the label %s", rule.Alert, name[1])
				}
			}
			for _, annotation := range []string{"summary", "description", "runbook_url"} {
				if rule.Annotations[annotation] == "" {
					t.Errorf("%s has no %s", rule.Alert, annotation)
				}
			}
			if !slices.Contains([]string{"info", "warning", "critical"}, rule.Labels["severity"]) {
				t.Errorf("%s has the severity %q", rule.Alert, rule.Labels["severity"])
			}
			anchor := "#" + strings.ToLower(rule.Alert)
			if !strings.HasSuffix(rule.Annotations["runbook_url"], "/docs/metrics.md"+anchor) || !strings.Contains(string(docs), "\n### "+rule.Alert+"\n") {
				t.Errorf("%s: %s does not lead to a heading of docs/metrics.md", rule.Alert, rule.Annotations["runbook_url"])
			}
		}
	}
}

// ruleTests is what rules_test.yaml has of the format of promtool test rules.
type ruleTests struct {
	RuleFiles          []string       `json:"rule_files"`
	EvaluationInterval model.Duration `json:"evaluation_interval"`
	Tests              []struct {
		Name        string         `json:"name"`
		Interval    model.Duration `json:"interval"`
		InputSeries []struct {
			Series string `json:"series"`
			Values string `json:"values"`
		} `json:"input_series"`
		AlertRuleTest []struct {
			EvalTime  model.Duration `json:"eval_time"`
			Alertname string         `json:"alertname"`
			ExpAlerts []struct {
				Labels      map[string]string `json:"exp_labels"`
				Annotations map[string]string `json:"exp_annotations"`
			} `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

// TestAlertsFire runs rules_test.yaml, as promtool does: each alert fires when it is to,
// with the labels and texts that it is to have, and is silent else.
func TestAlertsFire(t *testing.T) {
	text, err := os.ReadFile(testsFile)
	if err != nil {
		t.Fatal(err)
	}
	var suite ruleTests
	if err := yaml.UnmarshalStrict(text, &suite); err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for _, test := range suite.Tests {
		t.Run(test.Name, func(t *testing.T) {
			load := fmt.Sprintf("load %s\n", test.Interval)
			for _, series := range test.InputSeries {
				load += fmt.Sprintf("  %s %s\n", series.Series, series.Values)
			}
			last := time.Duration(0)
			expected := map[time.Duration]map[string][]string{}
			for _, check := range test.AlertRuleTest {
				at := time.Duration(check.EvalTime)
				last = max(last, at)
				if expected[at] == nil {
					expected[at] = map[string][]string{}
				}
				alerts := []string{}
				for _, alert := range check.ExpAlerts {
					tested[check.Alertname] = true
					alert.Labels[model.AlertNameLabel] = check.Alertname
					alerts = append(alerts, written(alert.Labels, alert.Annotations))
				}
				expected[at][check.Alertname] = alerts
			}
			for at, fired := range evaluate(t, load, last, time.Duration(suite.EvaluationInterval)) {
				for name, alerts := range expected[at] {
					if got := fired[name]; !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(alerts))) {
						t.Errorf("after %s %s fires\n%s\nand is to fire\n%s", at, name, strings.Join(got, "\n"), strings.Join(alerts, "\n"))
					}
				}
			}
		})
	}
	groups, _ := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}))
	for _, rule := range groups.Groups[0].Rules {
		if !tested[rule.Alert] {
			t.Errorf("no test lets %s fire", rule.Alert)
		}
	}
}

func written(labels, annotations map[string]string) string {
	var parts []string
	for _, values := range []map[string]string{labels, annotations} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			parts = append(parts, fmt.Sprintf("%s=%q", name, values[name]))
		}
	}
	return strings.Join(parts, " ")
}

// evaluate returns the alerts that fire at each time by their name.
func evaluate(t *testing.T, load string, last, interval time.Duration) map[time.Duration]map[string][]string {
	t.Helper()
	loader, err := promqltest.NewLazyLoader(load, promqltest.LazyLoaderOpts{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := loader.Close(); err != nil {
			t.Error(err)
		}
	}()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(loader.QueryEngine(), loader.Storage()), Appendable: loader.Storage(), Context: context.Background(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {}, Logger: promslog.NewNopLogger(), Parser: parser.NewParser(parser.Options{}),
	})
	groups, faults := manager.LoadGroups(interval, labels.EmptyLabels(), "", nil, false, rulesFile)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	fired := map[time.Duration]map[string][]string{}
	start := time.Unix(0, 0).UTC()
	for at := time.Duration(0); at <= last; at += interval {
		fired[at] = map[string][]string{}
		loader.WithSamplesTill(start.Add(at), func(err error) {
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range groups {
				group.Eval(loader.Context(), start.Add(at))
				for _, rule := range group.Rules() {
					if err := rule.LastError(); err != nil {
						t.Fatal(err)
					}
					alert, is := rule.(*rules.AlertingRule)
					if !is {
						continue
					}
					alert.SetRestored(true)
					for _, active := range alert.ActiveAlerts() {
						if active.State == rules.StateFiring {
							fired[at][alert.Name()] = append(fired[at][alert.Name()], written(active.Labels.Map(), active.Annotations.Map()))
						}
					}
				}
			}
		})
	}
	return fired
}
