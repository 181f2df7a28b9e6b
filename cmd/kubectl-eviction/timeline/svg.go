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

package timeline

import (
	"embed"
	"html/template"
	"io"
	"strings"
)

//go:embed timeline.svg.tmpl timeline.html.tmpl timeline.css
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"legible": legible, "instant": instant,
}).ParseFS(files, "timeline.svg.tmpl", "timeline.html.tmpl"))

// style colours the drawing, light or dark as the reader's system is.
var style = func() template.CSS {
	text, err := files.ReadFile("timeline.css")
	if err != nil {
		panic(err) // it is embedded
	}
	return template.CSS(text)
}()

// SVG draws a timeline as a picture that stands by itself.
func (t *Timeline) SVG(to io.Writer) error {
	d := t.layout()
	d.Style = style
	return templates.ExecuteTemplate(to, "svg", d)
}

// HTML draws a timeline as a page: the picture, whose marks link to a table of the
// events, and the table, whose rows link to the marks.
func (t *Timeline) HTML(to io.Writer) error {
	d := t.layout()
	d.Style, d.Links = style, true
	return templates.ExecuteTemplate(to, "html", d)
}

// legible leaves out what XML has no place for; a damaged journal may hold it.
func legible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < ' ' || r == 0xFFFE || r == 0xFFFF || r >= 0xD800 && r < 0xE000:
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}
