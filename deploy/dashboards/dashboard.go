package dashboards

import (
	"bytes"
	"encoding/json"
)

// Dashboard is one page.
type Dashboard struct {
	Name        string // of its file; its uid is "trunkline-" and the name
	Title       string
	Description string
	rows        []row
}

type row struct {
	title  string
	panels []panel
}

// All returns every dashboard.
func All() []Dashboard {
	return []Dashboard{overview(), pipeline(), fanout(), calls(), recordings(), aiSessions()}
}

type object = map[string]any

// JSON returns the dashboard in Grafana's import format.
func (d Dashboard) JSON() ([]byte, error) {
	page := object{
		"uid": "trunkline-" + d.Name, "title": d.Title, "description": d.Description,
		"tags": []string{"trunkline"}, "editable": true, "graphTooltip": 1, "schemaVersion": 39,
		"refresh": "10s", "time": object{"from": "now-1h", "to": "now"}, "timezone": "browser",
		"links": []object{{
			"type": "dashboards", "title": "Trunkline", "tags": []string{"trunkline"},
			"asDropdown": true, "includeVars": true, "keepTime": true,
		}},
		"templating":  object{"list": variables()},
		"annotations": object{"list": []object{starts()}},
		"panels":      d.layout(),
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(page)

	return text.Bytes(), err
}

var source = object{"type": "prometheus", "uid": "${datasource}"}

// variables returns the selectors of a page: data source, jobs and nodes. Every query uses job
// and instance.
func variables() []object {
	choice := func(name, label, query string) object {
		return object{
			"type": "query", "name": name, "label": label, "datasource": source,
			"definition": query, "query": object{"query": query, "refId": name},
			"includeAll": true, "allValue": ".+", "multi": true, "refresh": 2, "sort": 1,
			"current": object{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}},
		}
	}

	return []object{
		{"type": "datasource", "name": "datasource", "label": "Source", "query": "prometheus"},
		choice("job", "Job", "label_values(trunkline_build_info, job)"),
		choice("instance", "Node", `label_values(trunkline_build_info{job=~"$job"}, instance)`),
	}
}

// starts returns the annotation that marks node starts.
func starts() object {
	return object{
		"name": "Starts", "enable": true, "iconColor": "blue", "datasource": source,
		"expr":        expand(`changes(process_start_time_seconds{S}[R]) > 0`),
		"titleFormat": "start", "textFormat": "{{instance}}",
	}
}

const pageWidth = 24

// layout places the panels of each row side by side and begins a new line when one is full.
func (d Dashboard) layout() []object {
	var out []object
	id, y := 1, 0
	for _, r := range d.rows {
		out = append(out, object{
			"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": pageWidth, "h": 1},
		})
		id, y = id+1, y+1
		x, height := 0, 0

		for _, p := range r.panels {
			if x+p.width > pageWidth {
				x, y, height = 0, y+height, 0
			}

			one := p.toObject()
			one["id"] = id
			one["gridPos"] = object{"x": x, "y": y, "w": p.width, "h": p.height}
			out = append(out, one)
			id, x, height = id+1, x+p.width, max(height, p.height)
		}

		y += height
	}

	return out
}
