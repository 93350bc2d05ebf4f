package dashboards

const byQueue = "{{account}} {{queue}}"

// perQueue returns a query for the increase of a queue counter in a range, by queue.
func perQueue(counter, within string) string {
	return "sum by (account, queue) (increase(trunkline_queue_" + counter + "{S}[" + within + "]))"
}

func calls() Dashboard {
	return Dashboard{Name: "calls", Title: "Trunkline / Calls",
		Description: "Click to call, phones, and the reports of calls.", rows: []row{
			{"Click to call", []panel{
				graph("Open calls", count, "", gauge("trunkline_origination_active", "instance")),
				graph("Accepted", perSecond, "By the platform.",
					total("trunkline_origination_accepted_total", "accepted")),
				graph("Not placed", perSecond, "By kind of error; refused: the platform rejected the call.",
					rates("trunkline_origination_refused_total", "kind")),
				graph("Over a limit or closed", perSecond,
					"Calls of users by REST, from phones and by AI providers, by reason.",
					rates("trunkline_origination_limited_total", "reason")),
				graph("Steps", perSecond, "", rates("trunkline_origination_states_total", "state")),
				graph("Ended", perSecond, "By cause.", rates("trunkline_origination_ended_total", "cause")),
				graph("Time to bridge", seconds, "",
					quantiles("trunkline_origination_bridged_seconds", "0.5", "0.95")...),
				graph("Bridged, of those accepted", ratio, "", query{
					`sum(rate(trunkline_origination_states_total{S,state="bridged"}[R])) / (sum(rate(trunkline_origination_accepted_total{S}[R])) > 0)`,
					"bridged"}),
				graph("Cancelled", perSecond, "", rates("trunkline_origination_cancels_total", "result")),
			}},
			{"Queues (with stats.max_label_sets)", []panel{
				graph("Service level today", ratio, "Since midnight UTC.", query{
					`sum by (account, queue) (trunkline_queue_answered_within_total{S})` +
						` / ((sum by (account, queue) (trunkline_queue_offered_total{S}) - sum by (account, queue) (trunkline_queue_abandoned_short_total{S})) > 0)`,
					byQueue}),
				graph("Service level, last 30 minutes", ratio, "", query{
					perQueue("answered_within_total", "30m") + ` / ((` + perQueue("offered_total", "30m") + ` - ` +
						perQueue("abandoned_short_total", "30m") + `) > 0)`, byQueue}),
				graph("Waiting calls", count, "", gauge("trunkline_queue_waiting", "account", "queue")),
				graph("Longest wait now", seconds, "",
					query{`max by (account, queue) (trunkline_queue_longest_wait_seconds{S})`, byQueue}),
				graph("Offered", count, "In 15 minutes.", query{perQueue("offered_total", "15m"), byQueue}),
				graph("Answered", count, "In 15 minutes.", query{perQueue("answered_total", "15m"), byQueue}),
				graph("Abandoned", count, "In 15 minutes, including short waits.",
					query{perQueue("abandoned_total", "15m"), byQueue}),
				graph("Wait time of answered calls", seconds, "Mean of 30 minutes.", query{
					perQueue("answered_wait_seconds_total", "30m") + ` / (` + perQueue("answered_total", "30m") +
						` > 0)`,
					byQueue}),
				graph("Wait time of abandoned calls", seconds, "Mean of 30 minutes.", query{
					perQueue("abandoned_wait_seconds_total", "30m") + ` / (` + perQueue("abandoned_total", "30m") +
						` > 0)`,
					byQueue}),
			}},
			{"Phones", []panel{
				graph("Calls", count, "Being set up or up, click to call and ordinary ones.",
					gauge("trunkline_origination_sip_calls", "instance")),
				graph("Legs", count, "", gauge("trunkline_sip_legs", "instance")),
				graph("Calls placed and received", perSecond, "By cause; NORMAL_CLEARING: answered.",
					rates("trunkline_sip_setups_total", "cause")),
				graph("Registrations", perSecond, "", rates("trunkline_sip_registrations_total", "event")),
				graph("Authentications", perSecond, "Of phones, by result; portal: with the portal password.",
					rates("trunkline_identity_phone_authentications_total", "result")),
				graph("Requests over a limit", perSecond, "By limit.",
					rates("trunkline_sip_flood_dropped_total", "limit")),
				graph("Malformed and unexpected messages", perSecond, "",
					total("trunkline_sip_malformed_total", "no SIP"),
					total("trunkline_sip_stray_answers_total", "stray answers")),
				graph("Queued records and events", count, "", gauge("trunkline_origination_sip_outbox", "instance")),
			}},
			{"Media", []panel{
				graph("Ports", ratio, "Of the range, in use.",
					query{`trunkline_rtp_ports_in_use{S} / trunkline_rtp_ports{S}`, "{{instance}}"}),
				graph("Packets", perSecond, "", total("trunkline_rtp_packets_received_total", "received"),
					total("trunkline_rtp_packets_sent_total", "sent")),
				graph("Packets dropped", perSecond, "", rates("trunkline_rtp_packets_dropped_total", "reason")),
			}},
			{"FreeSWITCH", []panel{
				graph("Connected", count, "1: the event socket is connected and followed.",
					gauge("trunkline_origination_freeswitch_connected", "instance")),
				graph("Calls asked for", perSecond, "",
					rates("trunkline_origination_freeswitch_originates_total", "result")),
				graph("Queued calls", count, "Calls queued because of the switch's sessions-per-second.",
					gauge("trunkline_origination_freeswitch_queued", "instance")),
				graph("Refused: queue full", perSecond, "Calls that would have waited over 8 s, answered with 503.",
					total("trunkline_origination_freeswitch_queue_refused_total", "refused")),
				graph("The switch's limit", count,
					"Its sessions-per-second; a call takes four. 0: not known, no pacing.",
					gauge("trunkline_origination_freeswitch_sessions_per_second", "instance")),
				graph("Found missing", perSecond,
					"Calls whose end was found by comparison and not reported by an event.",
					total("trunkline_origination_freeswitch_gone_total", "calls")),
				graph("Commands", perSecond, "", rates("trunkline_esl_commands_total", "result")),
				graph("Connections ended", perSecond, "", rates("trunkline_esl_connections_ended_total", "reason")),
			}},
			{"Asterisk", []panel{
				graph("Connected", count, "1: the manager interface is connected and followed.",
					gauge("trunkline_origination_asterisk_connected", "instance")),
				graph("Calls asked for", perSecond, "",
					rates("trunkline_origination_asterisk_originates_total", "result")),
				graph("Found missing", perSecond,
					"Calls whose end was found by comparison and not reported by an event.",
					total("trunkline_origination_asterisk_gone_total", "calls")),
			}},
			{"Reports", []panel{
				graph("Queries", perSecond, "",
					query{`sum by (status) (rate(trunkline_api_requests_total{S,route="/api/v2/reports/cdrs"}[R]))`,
						"{{status}}"}),
				graph("Duration", seconds, "p99, or the mean without native histograms.",
					query{quantile("0.99", "trunkline_cdrindex_query_seconds", "kind"), "{{kind}}"}),
				graph("Rows stored", perSecond, "", rates("trunkline_cdrindex_records_total", "result")),
			}},
		}}
}
