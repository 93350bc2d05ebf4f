package dashboards

func recordings() Dashboard {
	const routes = `route=~"/api/v2/recordings.*"`
	return Dashboard{Name: "recordings", Title: "Trunkline / Recordings",
		Description: "Audio that is stored, and the keys it is sealed with.", rows: []row{
			{"Recordings", []panel{
				graph("Stored", perSecond, "Sealed or plain.", rates("trunkline_recording_stored_total", "kept")),
				graph("Bytes stored", bytesRate, "", rates("trunkline_recording_stored_bytes_total", "kept")),
				graph("Refused and damaged", perSecond,
					"Should have been sealed and could not be; found altered, cut short or missing.",
					total("trunkline_recording_refused_total", "refused"),
					total("trunkline_recording_damaged_total", "damaged")),
				graph("Requests", perSecond, "", rates("trunkline_api_requests_total{"+routes+"}", "method", "status")),
				graph("How long they took", seconds, "p99, or the mean without native histograms; transfer included.",
					query{quantile("0.99", "trunkline_api_request_seconds{"+routes+"}", "method"), "{{method}}"}),
			}},
			{"Keys", []panel{
				graph("Configurations handed out", perSecond, "Keys included.",
					total("trunkline_encryption_reads_total", "reads")),
				graph("Changes", perSecond, "", rates("trunkline_encryption_changes_total", "did")),
			}},
		}}
}
