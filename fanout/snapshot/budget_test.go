package snapshot

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"trunkline/event"
)

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Records that compress to nothing may name any number of agents and calls.
func TestFloorsStayWithinTheirBudget(t *testing.T) {
	const budget, states, each = 16 << 20, 8, 20_000
	before := heap()
	b := NewBudget(budget)
	var all []*player
	for range states {
		all = append(all, newPlayer(Config{AgentAge: day, CallAge: day, PerAccount: 1 << 15, Budget: b}))
	}
	long := strings.Repeat("x", 200)
	for i := range each {
		for n, p := range all[:1+i%states] { // the first ones get most
			account := fmt.Sprint("account", n, i%100)
			m := login(account, fmt.Sprint(long, i))
			p.play(m)
			p.play(calls(account, fmt.Sprint(long, "c", i), "member-queue-start"))
			if i%3 == 0 {
				m.Type = event.AgentLogout
				p.play(m)
			}
		}
	}
	if grown := heap() - before; grown > budget*5/4 || grown < budget/4 {
		t.Errorf("states with a budget of %d KiB hold %d KiB", budget>>10, grown>>10)
	}
	for n, p := range all {
		agents, calls, dropped := p.Sizes()
		if agents == 0 || calls == 0 || dropped == 0 {
			t.Errorf("floor %d: %d agents, %d calls, %d dropped", n, agents, calls, dropped)
		}
		if agents != len(p.agents.live.entries) || p.memory.lent > p.memory.used {
			t.Errorf("floor %d: %+v", n, p.memory)
		}
	}
	for _, p := range all {
		p.Release()
	}
	if lent := b.lent.Load(); lent+b.states.Load() != 0 {
		t.Errorf("%d bytes are lent for nothing", lent)
	}
	runtime.KeepAlive(all)
}
