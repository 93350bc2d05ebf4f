package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// jsMeasureFrames measures the intervals between the frames of 15 s, and what was done in the longest one.
const jsMeasureFrames = `(async () => {
	const gaps = [];
	let last = performance.now();
	let worst = { duration: 0 };
	const long = new PerformanceObserver((list) => { for (const one of list.getEntries()) if (one.duration > worst.duration) worst = one; });
	long.observe({ type: "long-animation-frame" });
	const end = last + 15000;
	await new Promise((done) => {
		const frame = () => {
			const now = performance.now();
			gaps.push(now - last);
			last = now;
			if (now < end) requestAnimationFrame(frame);
			else done();
		};
		requestAnimationFrame(frame);
	});
	gaps.sort((a, b) => a - b);
	const ms = Math.round, of = (one) => ms(one.duration) + " ms " + one.invoker + " " + one.sourceFunctionName + " of " + one.sourceURL.split("/").at(-1);
	const did = worst.duration ? ms(worst.duration) + " ms, rendering " + ms(worst.startTime + worst.duration - worst.renderStart) + ", styles " +
		ms(worst.startTime + worst.duration - worst.styleAndLayoutStart) + ": " + worst.scripts.map(of).join("; ") : "none was long";
	return { did, frames: gaps.length, median: gaps[gaps.length >> 1], p99: gaps[Math.floor(gaps.length * 0.99)], longest: gaps.at(-1) };
})()`

// traceEvent is an event of Chromium's trace. Times are in microseconds; CPU is that of its thread.
type traceEvent struct {
	Name, Ph string
	Pid, Tid int
	Ts, Dur  float64
	CPU      float64 `json:"tdur"`
	Args     struct{ Name string }
}

// busiest evaluates an expression and returns what took most CPU in one task of the page's main thread, which, unlike
// the times of frames, does not depend on what else the machine does.
func (p *page) busiest(t *testing.T, expression string, result any) (cpuMS float64, parts string) {
	t.Helper()
	p.mu.Lock()
	p.trace, p.traceComplete = nil, make(chan struct{})
	p.mu.Unlock()

	p.call(t, "Tracing.start", map[string]any{"transferMode": "ReportEvents", "traceConfig": map[string]any{
		"includedCategories": []string{"toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline",
			"__metadata"}}}, nil)
	p.mustEval(t, expression, result)
	p.call(t, "Tracing.end", nil, nil)
	<-p.traceComplete

	p.mu.Lock()
	defer p.mu.Unlock()

	type thread struct{ pid, tid int }
	main := map[thread]bool{}
	for _, e := range p.trace {
		if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
			main[thread{e.Pid, e.Tid}] = true
		}
	}

	var task traceEvent
	for _, e := range p.trace {
		if e.Ph == "X" && main[thread{e.Pid, e.Tid}] && strings.HasSuffix(e.Name, "RunTask") && e.CPU > task.CPU {
			task = e
		}
	}

	inside := map[string]float64{}
	for _, e := range p.trace {
		if e.Ph == "X" && e.Pid == task.Pid && e.Tid == task.Tid && e.Ts >= task.Ts && e.Ts+e.Dur <= task.Ts+task.Dur &&
			e.CPU >= 1000 {
			inside[e.Name] += e.CPU / 1000
		}
	}

	for _, name := range slices.SortedFunc(maps.Keys(inside),
		func(a, b string) int { return cmp.Compare(inside[b], inside[a]) }) {
		parts += fmt.Sprintf(" %s %.0f", name, inside[name])
	}

	return task.CPU / 1000, parts
}

// TestBoardOfTenThousandAgents measures the board's frames with 10,000 agents and 500 events a
// second, by hand on an otherwise idle machine: TRUNKLINE_BOARD_LOAD=1.
func TestBoardOfTenThousandAgents(t *testing.T) {
	if os.Getenv("TRUNKLINE_BOARD_LOAD") == "" {
		t.Skip("SKIPPED: a measurement by hand, set TRUNKLINE_BOARD_LOAD=1")
	}

	c := embeddedCluster(t)
	n := c.nodes[0]
	for part := range 10 {
		var events []string
		for i := range 1000 {
			agent := 10_000 + part*1000 + i
			events = append(events,
				fmt.Sprintf(`{"type":"AGENT_LOGIN","data":{"agent_id":"%d","agent_name":"Agent Number %d"}}`, agent,
					agent),
				fmt.Sprintf(`{"type":"AGENT_QUEUE_JOIN","data":{"agent_id":"%d","queue_id":"queue-%02d"}}`, agent,
					i%50))
		}

		c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, "["+strings.Join(events, ",")+"]", len(events))
	}

	n.playDemo(t, c.key, 500)
	b := n.newBoard(t)
	b.login(t, "admin")

	for _, view := range []string{"floor", "wall", "events", "history"} {
		b.view(t, "#"+view)
		b.awaitTrue(t, view, "document.body.dataset.view === "+jsString(view))
		var got struct {
			Frames               int
			Median, P99, Longest float64
			Did                  string
		}
		b.mustEval(t, jsWatchShifts, nil)
		cpu, parts := b.busiest(t, jsMeasureFrames, &got)
		t.Logf("%s: %d frames in 15 s, median %.0f ms, 99 %% within %.0f ms, longest %.0f ms", view,
			got.Frames, got.Median, got.P99, got.Longest)
		b.checkShifts(t, view)
		t.Logf("%s: in the longest frame: %s", view, got.Did)
		t.Logf("%s: most CPU in one task: %.0f ms:%s", view, cpu, parts)

		if got.Longest > 100 {
			t.Errorf("%s: a frame of %.0f ms", view, got.Longest)
		}
	}

	b.checkPage(t)
}
