package main

import "fmt"

// The builds that a scenario compares.
const (
	ours       = "ours"
	old        = "old"
	centrifugo = "centrifugo"
	plain      = "plain"     // a loop that writes one ready frame to every socket
	coalesced  = "coalesced" // the same, frames that wait leave in one write
	base       = "base"      // this tree without what the scenario adds
)

// scenario is one load, and the figures that are taken of it.
type scenario struct {
	name   string
	load   string // for the page
	args   string // of trunkline-bench fanout
	secure bool   // by TLS
	gather string // the server's fanout.gather_window; "": the default
	builds []string
	// otherArgs are those of a build in place of args.
	otherArgs map[string]string
	figures   []figure
	idle      bool // connections at rest: of the server's process alone, after its start's memory is released
	rest      bool // no load: one server on the embedded default
}

// figure is one number of a run's report.
type figure struct {
	unit  string
	value func(report) float64
	goals []goal
}

// goal bounds the ratio of our figure to that of another build; with against "", our figure.
type goal struct {
	against string
	limit   float64
	atLeast bool
}

func serverCPU(goals ...goal) figure {
	return figure{"server, µs a delivery", report.serverMicros, goals}
}

func allCPU(goals ...goal) figure {
	return figure{"all processes, µs a delivery", report.allMicros, goals}
}

func p50(goals ...goal) figure {
	return figure{"p50, ms", func(r report) float64 { return r.Latency.P50 }, goals}
}

func p99(goals ...goal) figure {
	return figure{"p99, ms", func(r report) float64 { return r.Latency.P99 }, goals}
}

func highestRate(goals ...goal) figure { return figure{"deliveries/s", report.heldRate, goals} }

func atMost(against string, limit float64) goal { return goal{against: against, limit: limit} }
func atLeast(against string, limit float64) goal {
	return goal{against: against, limit: limit, atLeast: true}
}

func scenarios() []scenario {
	single := []string{ours, old, centrifugo, plain}
	perDelivery := serverCPU(atMost(centrifugo, 0.7), atMost(plain, 1.15))
	climbBuilds := []string{ours, old, centrifugo, coalesced}

	return []scenario{
		{name: "one-1000-ws", load: "25 events/s to 1,000 ws", builds: single, figures: []figure{perDelivery, p99()},
			args: "--accounts 1 --subscribers 1000 --rate 25 --duration 8s"},
		{name: "one-1000-wss", load: "25 events/s to 1,000 wss", builds: single, secure: true,
			figures: []figure{perDelivery, p99()},
			args:    "--accounts 1 --subscribers 1000 --rate 25 --duration 8s"},
		{name: "one-5000-ws", load: "5 events/s to 5,000 ws", builds: single, figures: []figure{perDelivery, p99()},
			args: "--accounts 1 --subscribers 5000 --rate 5 --duration 8s"},
		{name: "one-5000-wss", load: "5 events/s to 5,000 wss", builds: single, secure: true,
			figures: []figure{perDelivery, p99()},
			args:    "--accounts 1 --subscribers 5000 --rate 5 --duration 8s"},
		{name: "gather", load: "50 events/s to 1,000 ws, gathered for 100 ms", gather: "100ms",
			builds: []string{ours, old, centrifugo}, figures: []figure{serverCPU(atMost(centrifugo, 0.35))},
			args: "--accounts 1 --subscribers 1000 --rate 50 --duration 8s"},
		{name: "many", load: "2,000 events/s of 200 accounts to ten ws each", builds: []string{ours, old, centrifugo},
			figures: []figure{
				allCPU(atMost(centrifugo, 0.6)), serverCPU(), p50(atMost(centrifugo, 1)), p99(atMost(centrifugo, 0.75)),
			},
			args: "--accounts 200 --subscribers 2000 --rate 2000 --duration 10s"},
		{name: "hundred", load: "100 events/s to 100 ws", builds: []string{ours, old, centrifugo},
			figures: []figure{
				allCPU(atMost(centrifugo, 0.7)), serverCPU(), p50(atMost(centrifugo, 0.75)),
				p99(atMost(centrifugo, 0.75)),
			},
			args: "--accounts 1 --subscribers 100 --rate 100 --duration 10s"},
		{name: "busy", load: "80 events/s to 5,000 ws", builds: []string{ours, old, coalesced},
			figures: []figure{p50(atMost(old, 1.1)), serverCPU()},
			args:    "--accounts 1 --subscribers 5000 --rate 80 --duration 6s"},
		{name: "highest-1000-ws", load: "highest rate with p99 ≤ 200 ms, 1,000 ws", builds: climbBuilds,
			figures:   []figure{highestRate(atLeast(centrifugo, 7), atLeast(old, 1), atLeast(coalesced, 0.7))},
			args:      climbFrom(1000, 400),
			otherArgs: map[string]string{centrifugo: climbFrom(1000, 60)}},
		{name: "highest-5000-ws", load: "the same, 5,000 ws", builds: climbBuilds,
			figures:   []figure{highestRate(atLeast(centrifugo, 7), atLeast(old, 1), atLeast(coalesced, 0.7))},
			args:      climbFrom(5000, 60),
			otherArgs: map[string]string{centrifugo: climbFrom(5000, 10)}},
		{name: "highest-9500-ws", load: "the same, 9,500 ws", builds: climbBuilds,
			figures:   []figure{highestRate(atLeast(centrifugo, 6))},
			args:      climbFrom(9500, 15),
			otherArgs: map[string]string{centrifugo: climbFrom(9500, 4)}},
		{name: "highest-5000-wss", load: "the same, 5,000 wss", builds: climbBuilds, secure: true,
			figures:   []figure{highestRate(atLeast(centrifugo, 4), atLeast(old, 1), atLeast(coalesced, 0.7))},
			args:      climbFrom(5000, 30),
			otherArgs: map[string]string{centrifugo: climbFrom(5000, 8)}},
		{name: "matching", load: "250 events/s to 100 of 9,500 ws (base: 100 of 1,000)",
			builds:    []string{ours, old, base},
			figures:   []figure{serverCPU(atMost(base, 1.1))},
			args:      "--accounts 95 --subscribers 9500 --rate 250 --duration 8s",
			otherArgs: map[string]string{base: "--accounts 10 --subscribers 1000 --rate 250 --duration 8s"}},
		{name: "stalled", load: "25 events/s to 1,000 ws, 5 % of which do not read (base: all read)",
			builds:    []string{ours, base},
			figures:   []figure{p99(atMost(base, 1.1))},
			args:      "--accounts 1 --subscribers 1000 --rate 25 --duration 8s --stall 5%",
			otherArgs: map[string]string{base: "--accounts 1 --subscribers 1000 --rate 25 --duration 8s"}},
		{name: "idle-ws", load: "5,000 ws at rest", idle: true, builds: []string{ours, old, centrifugo},
			figures: []figure{connectionMemory(8), acceptCPU(atMost(centrifugo, 0.67))},
			args:    "--accounts 1 --subscribers 5000 --rate 1 --duration 2s --idle 4s"},
		{name: "idle-wss", load: "5,000 wss at rest", idle: true, builds: []string{ours, old, centrifugo}, secure: true,
			figures: []figure{connectionMemory(20), acceptCPU()},
			args:    "--accounts 1 --subscribers 5000 --rate 1 --duration 2s --idle 4s"},
		{name: "rest", load: "`serve` on the embedded default, nothing connected", rest: true,
			builds: []string{ours, old},
			figures: []figure{
				{"% of a core", func(r report) float64 { return r.RestCPUPercent }, []goal{{limit: 0.5}}},
				{"MB", func(r report) float64 { return r.RestMB }, []goal{{limit: 60}}},
			}},
	}
}

// climbFrom is the load of a climb to the highest rate, from events a second to sockets of one account.
func climbFrom(sockets, rate int) string {
	return fmt.Sprintf("--accounts 1 --subscribers %d --rate %d --climb 200ms --warmup 1s --duration 3s", sockets, rate)
}

func connectionMemory(kilobytes float64) figure {
	return figure{"KB a connection", func(r report) float64 { return r.Usage.BytesPerConnection / 1024 },
		[]goal{{limit: kilobytes}}}
}

func acceptCPU(goals ...goal) figure {
	return figure{"µs of CPU to accept one", func(r report) float64 { return r.Usage.ConnectMicros }, goals}
}
