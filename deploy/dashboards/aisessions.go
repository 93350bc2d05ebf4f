package dashboards

func aiSessions() Dashboard {
	return Dashboard{Name: "aisessions", Title: "Trunkline / AI sessions",
		Description: "Calls that talk to an AI provider.", rows: []row{
			{"Sessions", []panel{
				graph("Now", count, "By ingress.", gauge("trunkline_aisession_active", "ingress")),
				graph("Started", perSecond, "", rates("trunkline_aisession_started_total", "ingress")),
				graph("Ended", perSecond, "By what ended them.", rates("trunkline_aisession_ended_total", "reason")),
				graph("Refused", perSecond, "", rates("trunkline_aisession_refused_total", "reason"),
					total("trunkline_aisession_unannounced_total", "not announced")),
				graph("Connections to providers", perSecond, "",
					total("trunkline_aisession_connect_failures_total", "failed"),
					total("trunkline_aisession_reconnects_total", "in the place of a lost one")),
				graph("Configurations changed", perSecond, "", rates("trunkline_aiprovider_changes_total", "did")),
			}},
			{"Audio", []panel{
				graph("First audio", seconds, "From a connection's start message to the provider's first audio.",
					quantiles("trunkline_aisession_first_audio_seconds", "0.5", "0.95", "0.99")...),
				graph("Turns", seconds, "From when the caller was last loud to the answer being played.",
					quantiles("trunkline_aisession_turn_gap_seconds", "0.5", "0.95", "0.99")...),
				graph("Holes", perSecond, "Audio of providers that came too late.",
					total("trunkline_aisession_underruns_total", "underruns")),
				graph("Dropped, seconds a second", count, "Audio of providers: too much waited to be played.",
					total("trunkline_aisession_overrun_seconds_total", "overrun")),
				graph("Dropped", perSecond, "Frames, packets and messages.",
					rates("trunkline_aisession_dropped_total", "kind")),
				graph("Ignored", perSecond, "Messages of providers, by what was wrong.",
					rates("trunkline_aisession_ignored_messages_total", "problem")),
			}},
		}}
}
