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

package timeline_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/kubelet/metrics"

	"github.com/kubelet-eviction/kubelet-eviction/cmd/kubectl-eviction/timeline"
	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
	"github.com/kubelet-eviction/kubelet-eviction/test/simnode"
)

var rewrite = flag.Bool("rewrite", false, "write the drawings of testdata anew; look at them in a browser before you commit them")

func TestMain(m *testing.M) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(simnode.GatesByDefault()); err != nil {
		panic(err)
	}
	metrics.Register()
	os.Exit(m.Run())
}

// live lets the node of a story live and returns its journal.
func live(t *testing.T, story string) []byte {
	t.Helper()
	spec, err := simnode.Parse(story)
	if err != nil {
		t.Fatal(err)
	}
	_, records := simnode.LiveRecorded(t, spec)
	return records
}

// collected reads a journal. The version of the kubelet is that of whatever built the
// test, so another is put in its place.
func collected(t *testing.T, window timeline.Window, records []byte) *timeline.Timeline {
	t.Helper()
	collector := timeline.NewCollector(window, nil)
	err := journal.Read(bytes.NewReader(records), func(r *journal.Record) error {
		if r.Config != nil {
			r.Config.Kubelet = "v1.37.2"
		}
		return collector.Add(r)
	}, func(fault *journal.LineError) error { return fault })
	if err != nil {
		t.Fatal(err)
	}
	drawn := collector.Timeline()
	if drawn == nil {
		t.Fatal("no record lies in the window")
	}
	return drawn
}

func svg(t *testing.T, drawn *timeline.Timeline) string {
	t.Helper()
	var text strings.Builder
	if err := drawn.SVG(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func html(t *testing.T, drawn *timeline.Timeline) string {
	t.Helper()
	var text strings.Builder
	if err := drawn.HTML(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// wellFormed reads a drawing to its end as XML and returns the text of its elements.
func wellFormed(t *testing.T, drawing string) (texts []string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(drawing))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("the drawing is not well-formed: %v", err)
		}
		if text, is := token.(xml.CharData); is && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
}

// TestDrawings draws the stories of testdata as they were drawn when somebody last
// looked at them.
func TestDrawings(t *testing.T) {
	stories, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(stories) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, story := range stories {
		t.Run(filepath.Base(story), func(t *testing.T) {
			text, err := os.ReadFile(story)
			if err != nil {
				t.Fatal(err)
			}
			drawing := svg(t, collected(t, timeline.Window{}, live(t, string(text))))
			wellFormed(t, drawing)
			golden := strings.TrimSuffix(story, ".txt") + ".svg"
			if *rewrite {
				if err := os.WriteFile(golden, []byte(drawing), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			expected, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if drawing != string(expected) {
				t.Errorf("%s is drawn otherwise now; go test ./cmd/kubectl-eviction/timeline -rewrite writes it anew, look at it before you commit it", golden)
			}
		})
	}
}

// TestThePageLinks: each mark links to a row of the table and each row to its mark,
// so that the keyboard reaches them all.
func TestThePageLinks(t *testing.T) {
	text, err := os.ReadFile("testdata/disk.txt")
	if err != nil {
		t.Fatal(err)
	}
	page := html(t, collected(t, timeline.Window{}, live(t, string(text))))
	ids := map[string]int{}
	for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		ids[id[1]]++
	}
	links := regexp.MustCompile(`<a [^>]*href="#([^"]+)"[^>]*>`).FindAllStringSubmatch(page, -1)
	if len(links) < 10 {
		t.Errorf("the page has %d links", len(links))
	}
	for _, link := range links {
		if ids[link[1]] != 1 {
			t.Errorf("%s: there are %d elements of that name", link[0], ids[link[1]])
		}
		if link[1][0] == 'r' && !strings.Contains(link[0], "aria-label=") {
			t.Errorf("%s has no label", link[0])
		}
	}
	for _, expected := range []string{"default/builder", "dead containers of imagefs", "unused images of imagefs", "DiskPressure", "10 GiB expected"} {
		if !strings.Contains(page, expected) {
			t.Errorf("the page does not say %q", expected)
		}
	}
}
