package dashboards

func pipeline() Dashboard {
	const latency = "trunkline_fanout_delivery_latency_seconds"
	return Dashboard{Name: "pipeline", Title: "Trunkline / Pipeline", Description: "Records from the door to the subscriber and to the reports.", rows: []row{
		{"End to end", []panel{
			heat("From Kafka's timestamp to the socket", latency, "How late events were, of all that were delivered live."),
			graph("Latency", seconds, "", quantiles(latency, "0.5", "0.95", "0.99")...).wide(),
			graph("Rates", perSecond, "What comes in must come out of each stage.",
				total("trunkline_ingest_records_total", "accepted"), total("trunkline_normalizer_records_total", "normalized"),
				total(`trunkline_kafka_produced_records_total{topic=~".*cc\\.evt"}`, "on cc.evt"), total("trunkline_fanout_events_total", "read by fanout, all nodes")).wide(),
		}},
		{"Ingest", []panel{
			graph("Bodies", perSecond, "Accepted, or the kind of refusal.", rates("trunkline_ingest_bodies_total", "result")),
			graph("Records", perSecond, "", rates("trunkline_ingest_records_total", "topic")),
			graph("Bytes", bytesRate, "", rates("trunkline_ingest_record_bytes_total", "topic")),
			graph("Until Kafka has a body", seconds, "p99; the mean where Prometheus has no native histograms.", quantiles("trunkline_ingest_produce_seconds", "0.99")...),
			graph("Memory held by bodies", octets, "At half of ingest.max_in_flight_bytes more bodies wait.", gauge("trunkline_ingest_in_flight_bytes", "instance")),
			graph("Waiting bodies", count, "Not read yet. After ingest.produce_timeout they get 429.", gauge("trunkline_ingest_waiting_bodies", "instance")),
			graph("Wait of a body", seconds, "p99; the mean where Prometheus has no native histograms.", quantiles("trunkline_ingest_wait_seconds", "0.99")...),
		}},
		{"Normalizer", []panel{
			graph("Lag", count, "Records between the commit and the end of the log.",
				query{`sum by (topic, group) (max by (topic, group, partition) (trunkline_kafka_lag_records{S}))`, "{{group}} {{topic}}"}),
			graph("Lag of the worst partitions", count, "",
				query{`topk(5, max by (topic, partition) (trunkline_kafka_lag_records{S,group="trunkline-normalizer"}))`, "{{topic}} {{partition}}"}),
			graph("Delay", seconds, "From Kafka's timestamp to the batch being durable; p99, or the mean without native histograms.",
				quantiles("trunkline_normalizer_delay_seconds", "0.99")...),
			graph("By format", perSecond, "", rates("trunkline_normalizer_records_total", "format")),
			graph("Dead letters", perSecond, "By raw topic and reason.", rates("trunkline_dead_letters_total", "topic", "kind")),
			graph("Dead letters by format", perSecond, "", rates(`trunkline_normalizer_records_total{result="dead_letter"}`, "format")),
			graph("Batch", count, "Records; p50, or the mean without native histograms.", quantiles("trunkline_normalizer_batch_records", "0.5")...),
			graph("Waiting and losing", perSecond, "Waits because something was away; records that retention or damage took.",
				total("trunkline_normalizer_retries_total", "waits"), rates("trunkline_normalizer_lost_records_total", "topic"),
				rates("trunkline_normalizer_log_restarts_total", "topic")),
		}},
		{"Call records", []panel{
			graph("Records", perSecond, "What became of them.", rates("trunkline_cdrindex_records_total", "result")),
			graph("Delay", seconds, "From Kafka's timestamp to the row; p99, or the mean without native histograms.",
				quantiles("trunkline_cdrindex_delay_seconds", "0.99")...),
			graph("Oldest that waits", seconds, "Read, and not in the database.", query{`max by (instance) (trunkline_cdrindex_lag_seconds{S})`, "{{instance}}"}),
			graph("Batches", perSecond, "", total("trunkline_cdrindex_batches_total", "batches")),
			graph("Writing a batch", seconds, "p99, or the mean without native histograms.", quantiles("trunkline_cdrindex_batch_seconds", "0.99")...),
			graph("Faults", perSecond, "", rates("trunkline_cdrindex_errors_total", "kind"), total("trunkline_cdrindex_lost_records_total", "lost")),
		}},
		{"Kafka", []panel{
			graph("Produced", perSecond, "", rates("trunkline_kafka_produced_records_total", "topic")),
			graph("Consumed", perSecond, "", rates("trunkline_kafka_consumed_records_total", "topic")),
			graph("Bytes", bytesRate, "", named("out {{topic}}", rates("trunkline_kafka_produced_bytes_total", "topic")),
				named("in {{topic}}", rates("trunkline_kafka_consumed_bytes_total", "topic"))),
			graph("Acknowledgement", seconds, "p99, or the mean without native histograms.", quantiles("trunkline_kafka_produce_seconds", "0.99")...),
			graph("Batches produced", count, "Records; p50, or the mean without native histograms.", quantiles("trunkline_kafka_produce_batch_records", "0.5")...),
			graph("Size of batches", octets, "p50, or the mean without native histograms.", quantiles("trunkline_kafka_produce_batch_bytes", "0.5")...),
			graph("Waiting for acknowledgement", octets, "", gauge("trunkline_kafka_produce_in_flight_bytes", "instance")),
			graph("Failed requests", perSecond, "", rates("trunkline_kafka_errors_total", "op", "reason"), total("trunkline_kafka_produce_retries_total", "sent again")),
			graph("Groups", perSecond, "Commits, rebalances, and partitions started again after a failure.",
				named("commits {{group}}", rates("trunkline_kafka_commits_total", "group")),
				named("generations {{group}}", rates("trunkline_kafka_generations_total", "group")),
				named("restarts {{group}}", rates("trunkline_kafka_lane_restarts_total", "group"))),
		}},
	}}
}
