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

package journal_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kubelet-eviction/kubelet-eviction/pkg/kubelet/eviction/journal"
)

// TestSchemaIsDocumented looks for each field of a record in docs/journal.md.
func TestSchemaIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "journal.md"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(kind reflect.Type) {
		switch kind.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			look(kind.Elem())
		case reflect.Struct:
			if seen[kind] || kind.PkgPath() != reflect.TypeFor[journal.Record]().PkgPath() {
				return
			}
			seen[kind] = true
			for i := range kind.NumField() {
				field := kind.Field(i)
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				if field.IsExported() && name != "" && !strings.Contains(string(text), "`"+name+"`") {
					t.Errorf("docs/journal.md does not mention %s.%s, %s", kind.Name(), field.Name, name)
				}
				if field.IsExported() {
					look(field.Type)
				}
			}
		}
	}
	look(reflect.TypeFor[journal.Record]())
	if len(seen) < 20 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
