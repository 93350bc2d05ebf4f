package dashboards

import "strings"

type panel struct {
	kind               string // timeseries, stat, heatmap or table
	title, description string
	unit               string
	width, height      int
	queries            []query
	warn, critical     float64 // thresholds; unused if critical is 0
}

type query struct{ expr, legend string }

// Units, with Grafana's names.
const (
	count     = "short"
	perSecond = "cps"
	seconds   = "s"
	bytesUnit = "bytes"
	bytesRate = "Bps"
	ratio     = "percentunit"
)

// graph returns a panel of lines over time.
func graph(title, unit, about string, queries ...query) panel {
	return panel{kind: "timeseries", title: title, description: about, unit: unit, width: 8, height: 8,
		queries: queries}
}

// number returns a panel of one figure with its recent history.
func number(title, unit, expr string) panel {
	return panel{kind: "stat", title: title, unit: unit, width: 4, height: 4, queries: []query{{expr, ""}}}
}

// limits colours a number by thresholds.
func (p panel) limits(warn, critical float64) panel {
	p.warn, p.critical = warn, critical
	return p
}

func (p panel) wide() panel {
	p.width = 12
	return p
}

// expand replaces the short forms of a query: S in a selector by the chosen nodes, [R] by a range
// that suits the graph.
func expand(expr string) string {
	return strings.NewReplacer(
		"{S", `{job=~"$job",instance=~"$instance"`,
		"[R]", "[$__rate_interval]",
	).Replace(expr)
}

func (p panel) toObject() object {
	var targets []object
	for i, q := range p.queries {
		t := object{"refId": string(rune('A' + i)), "datasource": source, "expr": expand(q.expr),
			"legendFormat": q.legend}
		switch p.kind {
		case "heatmap":
			t["format"] = "heatmap"
		case "table":
			t["format"], t["instant"] = "table", true
		}

		targets = append(targets, t)
	}

	return object{
		"type": p.kind, "title": p.title, "description": p.description, "datasource": source,
		"targets": targets, "fieldConfig": p.fields(), "options": p.options(),
	}
}

func (p panel) fields() object {
	defaults := object{"unit": p.unit, "min": 0}
	if p.kind == "timeseries" {
		defaults["custom"] = object{"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": false}
	}

	if p.kind == "stat" {
		steps := []object{{"color": "text", "value": nil}}
		if p.critical != 0 {
			steps = []object{{"color": "green", "value": nil}, {"color": "orange", "value": p.warn},
				{"color": "red", "value": p.critical}}
		}
		defaults["thresholds"] = object{"mode": "absolute", "steps": steps}
	}

	return object{"defaults": defaults, "overrides": []object{}}
}

func (p panel) options() object {
	switch p.kind {
	case "timeseries":
		return object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		}
	case "stat":
		return object{
			"reduceOptions": object{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
			"colorMode":     "value", "graphMode": "area", "textMode": "auto",
		}
	case "heatmap":
		return object{
			"calculate": false, "cellGap": 1, "color": object{"mode": "scheme", "scheme": "Oranges", "steps": 64},
			"yAxis":   object{"unit": p.unit},
			"tooltip": object{"mode": "single", "showColorScale": true, "yHistogram": true},
		}
	default:
		return object{}
	}
}
