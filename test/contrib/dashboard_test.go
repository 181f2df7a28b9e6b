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

package contrib

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
)

// dashboard is what matters of Grafana's model of one.
type dashboard struct {
	UID, Title    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Panels []struct {
		ID                       int
		Type, Title, Description string
		Datasource               source
		GridPos                  struct{ X, Y, W, H int }
		FieldConfig              struct{ Defaults struct{ Unit string } }
		Targets                  []struct {
			RefID      string `json:"refId"`
			Expr       string
			Datasource source
		}
	}
}

type source struct{ Type, UID string }

// units are those of Grafana that the dashboard may use.
var units = []string{"bytes", "short", "s", "ops"}

func TestDashboard(t *testing.T) {
	text, err := os.ReadFile("../../contrib/grafana/kubelet-eviction.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 {
		t.Error("it lacks a uid, a title or the version of its schema")
	}
	variable := false
	for _, v := range d.Templating.List {
		variable = variable || v.Name == "datasource" && v.Type == "datasource" && v.Query == "prometheus"
	}
	if !variable {
		t.Error("no variable datasource chooses the Prometheus")
	}
	chosen := source{"prometheus", "${datasource}"}
	metrics := documented(t)
	ids, shown := map[int]bool{}, map[string]bool{}
	// A test need not know how wide the reader's screen is.
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$instance", ".*")
	for i, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] {
			t.Errorf("%s: its id %d is not its own", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Title == "" || p.Description == "" || !slices.Contains(units, p.FieldConfig.Defaults.Unit) || p.Datasource != chosen {
			t.Errorf("panel %d, %q, lacks a title, a description, a unit or the data source", p.ID, p.Title)
		}
		for _, other := range d.Panels[:i] {
			a, b := p.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H || a.X+a.W > 24 {
				t.Errorf("%q lies on %q or beyond the edge", p.Title, other.Title)
			}
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			if target.RefID == "" || target.Datasource != chosen {
				t.Errorf("%s: a query without a name or the data source", p.Title)
			}
			checkQuery(t, metrics, variables.Replace(target.Expr))
			for name := range metrics {
				if strings.Contains(target.Expr, name+"{") {
					shown[strings.TrimSuffix(name, "_bucket")] = true
				}
			}
		}
	}
	for name := range metrics {
		if base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count"); !shown[base] {
			t.Errorf("the dashboard does not show %s", base)
		}
	}
}
