package dashboards

func fanout() Dashboard {
	return Dashboard{Name: "fanout", Title: "Trunkline / Fanout",
		Description: "Subscribers: connections, deliveries and delivery lag.", rows: []row{
			{"Connections", []panel{
				graph("Connected", count, "Subscribers that have not been disconnected.",
					gauge("trunkline_fanout_connections", "instance")),
				graph("Opened", perSecond, "", rates("trunkline_fanout_opened_total", "transport")),
				graph("Closed", perSecond,
					"By close code: 1001 silent, 1006 connection broken, 1012 restart, 4001 expired, 4003 revoked, 4008 too slow, 4009 replaced.",
					rates("trunkline_fanout_closed_total", "code")),
				graph("Refused", perSecond, "Before the upgrade, by the kind of fault.",
					rates("trunkline_fanout_refused_total", "kind")),
				graph("Slow closes", perSecond, "4008: the queue of the subscriber or the node was full.",
					rates(`trunkline_fanout_closed_total{code="4008"}`, "instance")),
				graph("Shared state in Redis", perSecond, "", rates("trunkline_fanout_presence_total", "result")),
			}},
			{"Deliveries", []panel{
				graph("Deliveries", perSecond, "Put on live subscribers' queues.",
					rates("trunkline_fanout_deliveries_total", "instance")),
				graph("Events read", perSecond,
					"From cc.evt; each node reads the partitions in which its subscribers may see an account.",
					rates("trunkline_fanout_events_total", "instance")),
				graph("Subscribers for an event", count, "",
					query{`sum(rate(trunkline_fanout_deliveries_total{S}[R])) / (sum(rate(trunkline_fanout_events_total{S}[R])) > 0)`,
						"deliveries/event"}),
				graph("Latency", seconds, "From the raw record's Kafka timestamp to the socket write.",
					quantiles("trunkline_fanout_delivery_latency_seconds", "0.5", "0.95", "0.99")...),
				graph("Latency by node", seconds, "p99.",
					query{quantile("0.99", "trunkline_fanout_delivery_latency_seconds", "instance"), "{{instance}}"}),
				graph("Queues", bytesUnit, "Waiting for all subscribers of a node; bounded by fanout.node_queue_bytes.",
					gauge("trunkline_fanout_queued_bytes", "instance")),
			}},
			{"Resume", []panel{
				graph("Replays", count, "Subscribers that replay older events.",
					gauge("trunkline_fanout_replays", "instance")),
				graph("Events delivered by replays", perSecond, "",
					rates("trunkline_fanout_replayed_total", "instance")),
				graph("Reads from Kafka", perSecond, "Of events older than the ring.",
					rates("trunkline_fanout_history_reads_total", "instance")),
			}},
			{"Stream", []panel{
				graph("Partitions followed", count, "", gauge("trunkline_fanout_partitions_followed", "instance")),
				graph("Faults", perSecond, "While following or replaying; hole: events were lost.",
					rates("trunkline_fanout_stream_errors_total", "kind")),
				graph("Repeats dropped", perSecond, "Events that two normalizers of a partition wrote.",
					rates("trunkline_fanout_repeats_total", "instance")),
			}},
			{"Snapshots", []panel{
				graph("Agents and calls", count, "In the state of all accounts, while snapshots are asked for.",
					query{`max(trunkline_fanout_snapshot_agents{S})`, "agents"},
					query{`max(trunkline_fanout_snapshot_calls{S})`, "calls"}),
				graph("Snapshot lag", count, "Records of cc.state that are not read yet.",
					gauge("trunkline_fanout_snapshot_lag_messages", "instance")),
			}},
		}}
}
