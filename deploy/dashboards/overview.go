package dashboards

func overview() Dashboard {
	return Dashboard{Name: "overview", Title: "Trunkline / Overview", Description: "Is it well, and how much goes through it.", rows: []row{
		{"Now", []panel{
			number("Nodes", count, `count(trunkline_build_info{S})`),
			number("Subscribers", count, `sum(trunkline_fanout_connections{S})`),
			number("Records in", perSecond, `sum(rate(trunkline_ingest_records_total{S}[R]))`),
			number("Deliveries", perSecond, `sum(rate(trunkline_fanout_deliveries_total{S}[R]))`),
			number("Latency, p99", seconds, quantile("0.99", "trunkline_fanout_delivery_latency_seconds")).limits(0.25, 1),
			number("Normalizer's lag", count, `sum(trunkline_kafka_lag_records{S,group="trunkline-normalizer"})`).limits(1000, 10000),
			number("Dead letters, 1 h", count, `sum(increase(trunkline_dead_letters_total{S}[1h]))`).limits(1, 100),
			number("Server errors, 1 h", count, `sum(increase(trunkline_api_requests_total{S,status="5xx"}[1h]))`).limits(1, 100),
			number("Calls being set up or up", count, `sum(trunkline_origination_active{S})`),
			number("AI sessions", count, `sum(trunkline_aisession_active{S})`),
			number("Slow subscribers closed, 1 h", count, `sum(increase(trunkline_fanout_closed_total{S,code="4008"}[1h]))`).limits(1, 100),
			number("Records lost, 24 h", count, `sum(increase(trunkline_normalizer_lost_records_total{S}[24h])) + sum(increase(trunkline_cdrindex_lost_records_total{S}[24h]))`).limits(1, 1),
		}},
		{"Traffic", []panel{
			graph("Records in", perSecond, "Accepted over HTTP, by topic.", rates("trunkline_ingest_records_total", "topic")),
			graph("Normalized", perSecond, "Made a message or a row, and dead letters.", rates("trunkline_normalizer_records_total", "result")),
			graph("Delivered", perSecond, "Put on subscribers' queues, live and by catching up.",
				total("trunkline_fanout_deliveries_total", "live"), total("trunkline_fanout_replayed_total", "catching up")),
			graph("Requests", perSecond, "Answered, by class of status.", rates("trunkline_api_requests_total", "status")),
			graph("Slowest routes", seconds, "p99; the mean where Prometheus has no native histograms.",
				query{`topk(5, ` + quantile("0.99", "trunkline_api_request_seconds", "route", "method") + `)`, "{{method}} {{route}}"}),
			graph("Requests being worked on", count, "", gauge("trunkline_api_requests_in_flight", "instance")),
		}},
		{"Who comes", []panel{
			graph("Logins", perSecond, "By what they are for and how they ended.", rates("trunkline_identity_logins_total", "audience", "result")),
			graph("Tokens checked", perSecond, "", rates("trunkline_identity_token_checks_total", "result")),
			graph("API keys checked", perSecond, "", rates("trunkline_identity_key_checks_total", "result")),
			graph("Signs of trouble", perSecond, "Refresh tokens used twice, failures to follow the database, login limits without Redis.",
				total("trunkline_identity_refresh_reuses_total", "token reused"),
				total("trunkline_identity_reload_errors_total", "database away"),
				total("trunkline_identity_limiter_fallbacks_total", "Redis away")).wide(),
		}},
		{"Nodes", []panel{
			graph("CPU", count, "Cores used.", rates("process_cpu_seconds_total", "instance")),
			graph("Memory", octets, "Resident, and the Go heap in use.",
				gauge("process_resident_memory_bytes", "instance"), named("{{instance}} heap", gauge("go_memstats_heap_inuse_bytes", "instance"))),
			graph("File descriptors", share, "Used, of those allowed: one a connection.",
				query{`process_open_fds{S} / process_max_fds{S}`, "{{instance}}"}),
			graph("Goroutines", count, "", gauge("go_goroutines", "instance")),
			graph("Longest pause of the collector", seconds, "", query{`max by (instance) (go_gc_duration_seconds{S,quantile=~"1(.0)?"})`, "{{instance}}"}),
			graph("Running for", seconds, "", query{`time() - process_start_time_seconds{S}`, "{{instance}}"}),
			{kind: "table", title: "Versions", unit: count, width: pageWidth, height: 5,
				queries: []query{{`count by (version) (trunkline_build_info{S})`, ""}}},
		}},
	}}
}
