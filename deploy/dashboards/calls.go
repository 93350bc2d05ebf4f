package dashboards

func calls() Dashboard {
	return Dashboard{Name: "calls", Title: "Trunkline / Calls", Description: "Click to call, phones, and the reports of calls.", rows: []row{
		{"Click to call", []panel{
			graph("Open calls", count, "", gauge("trunkline_origination_active", "instance")),
			graph("Accepted", perSecond, "By the platform.", total("trunkline_origination_accepted_total", "accepted")),
			graph("Not placed", perSecond, "By the kind of error; refused: the platform said no.", rates("trunkline_origination_refused_total", "kind")),
			graph("Steps", perSecond, "", rates("trunkline_origination_states_total", "state")),
			graph("Ended", perSecond, "By cause.", rates("trunkline_origination_ended_total", "cause")),
			graph("Until bridged", seconds, "", quantiles("trunkline_origination_bridged_seconds", "0.5", "0.95")...),
			graph("Bridged, of those accepted", share, "", query{
				`sum(rate(trunkline_origination_states_total{S,state="bridged"}[R])) / (sum(rate(trunkline_origination_accepted_total{S}[R])) > 0)`, "bridged"}),
			graph("Cancelled", perSecond, "", rates("trunkline_origination_cancels_total", "result")),
		}},
		{"Reports", []panel{
			graph("Queries", perSecond, "", query{`sum by (status) (rate(trunkline_api_requests_total{S,route="/api/v2/reports/cdrs"}[R]))`, "{{status}}"}),
			graph("How long they took", seconds, "p99, or the mean without native histograms.",
				query{quantile("0.99", "trunkline_cdrindex_query_seconds", "kind"), "{{kind}}"}),
			graph("Rows that arrive", perSecond, "", rates("trunkline_cdrindex_records_total", "result")),
		}},
	}}
}
