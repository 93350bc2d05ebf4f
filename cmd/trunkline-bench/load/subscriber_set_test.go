package load

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/wsframe"
)

func eachTransport(t *testing.T, test func(t *testing.T, secure bool)) {
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "ws", true: "wss"}[secure], func(t *testing.T) {
			t.Parallel()
			test(t, secure)
		})
	}
}

func TestSubscribersSeeEveryFault(t *testing.T) {
	eachTransport(t, func(t *testing.T, secure bool) {
		for _, c := range []struct {
			name    string
			numbers []uint64
			want    string
		}{
			{"none", []uint64{1, 2, 3, 4}, "lost 0, disordered 0, duplicated 0"},
			{"loss", []uint64{1, 4}, "lost 2, disordered 0, duplicated 0"},
			{"repeats", []uint64{1, 2, 2, 1, 3, 4}, "lost 0, disordered 0, duplicated 2"},
			{"order", []uint64{1, 3, 2, 4}, "lost 0, disordered 1, duplicated 0"},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := newServer(t, secure, func(p *peer) {
					p.send(events(c.numbers...)...)
					p.discardInput()
				})

				const sockets = 20
				l := openLoad(t, s.loadConfig(func(cfg *Config) { cfg.Groups[0].Sockets, cfg.Workers = sockets, 2 }))
				tally := await(t, l, "all events",
					func(t *Tally) bool { return t.Deliveries == uint64(sockets*len(c.numbers)) })
				each := *tally
				each.Lost /= sockets
				each.Disordered /= sockets
				each.Duplicated /= sockets

				if got := describeTally(&each); !strings.Contains(got, c.want) ||
					tally.Faultless() != (c.name == "none") {
					t.Error(got)
				}
				if tally.Proven != sockets || tally.Open != sockets || tally.Latency.Count() != tally.Deliveries {
					t.Errorf("proven %d, open %d, latencies of %d", tally.Proven, tally.Open, tally.Latency.Count())
				}
				if n := l.Outstanding([]uint64{6}); n != 2*sockets {
					t.Errorf("of six, %d are outstanding", n)
				}
			})
		}
	})
}

func TestFramesInPiecesAndManyInOneWrite(t *testing.T) {
	eachTransport(t, func(t *testing.T, secure bool) {
		const count = 3000
		numbers := make([]uint64, count)
		for i := range numbers {
			numbers[i] = uint64(i + 1)
		}

		large := message(count+1, Stamp{Seq: count + 1}) + strings.Repeat("x", 3*readBytes)
		s := newServer(t, secure, func(p *peer) {
			var wire []byte
			for _, f := range events(numbers...) {
				wire = append(wire, f...)
			}

			wire = append(wire, text(large)...)
			for size := 1; len(wire) > 0; size = size*3%70_001 + 1 {
				n := min(size, len(wire))
				p.send(wire[:n])
				wire = wire[n:]
			}

			p.discardInput()
		})

		l := openLoad(t, s.loadConfig(nil))
		tally := await(t, l, "all events", func(t *Tally) bool { return t.Deliveries == count+1 })
		if !tally.Faultless() || tally.Foreign != 0 {
			t.Error(describeTally(tally))
		}
	})
}

func TestPingsAreAnsweredAndClosesToo(t *testing.T) {
	eachTransport(t, func(t *testing.T, secure bool) {
		answers := make(chan string, 2)
		s := newServer(t, secure, func(p *peer) {
			p.send(serverFrame(wsframe.Ping, true, []byte("hello")))
			op, payload := p.read()
			answers <- fmt.Sprintf("%x %s", op, payload)
			p.send(serverCloseFrame(4008))
			op, payload = p.read()
			answers <- fmt.Sprintf("%x %x", op, payload)
		})

		l := openLoad(t, s.loadConfig(nil))
		tally := await(t, l, "the close", func(t *Tally) bool { return t.Closed[4008] == 1 })
		if pong, bye := <-answers, <-answers; pong != "8a hello" || bye != "88 0fa8" {
			t.Errorf("answers %q and %q", pong, bye)
		}
		if tally.Pings != 1 || tally.Open != 0 {
			t.Errorf("%d pings, %s", tally.Pings, describeTally(tally))
		}
	})
}

func TestOurOwnEndIsANormalClose(t *testing.T) {
	eachTransport(t, func(t *testing.T, secure bool) {
		said := make(chan string, 1)
		s := newServer(t, secure, func(p *peer) {
			op, payload := p.read()
			said <- fmt.Sprintf("%x %x", op, payload)
		})

		l := openLoad(t, s.loadConfig(nil))
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if got := <-said; got != "88 03e8" {
			t.Errorf("sent %q", got)
		}
	})
}

func TestBreachesOfTheProtocolAreFaults(t *testing.T) {
	for name, wire := range map[string][]byte{
		"reserved bits": {0xC1, 0}, "a masked frame": {0x81, 0x80, 0, 0, 0, 0}, "a continuation of nothing": {0x80, 0},
	} {
		s := newServer(t, false, func(p *peer) {
			p.send(wire)
			p.discardInput()
		})

		l := openLoad(t, s.loadConfig(func(cfg *Config) { cfg.Resume = ResumeByID }))
		tally := await(t, l, name, func(t *Tally) bool { return t.Closed[codeProtocol] == 1 })
		if tally.Faultless() || tally.Misbehaved != 1 {
			t.Errorf("%s: %s", name, describeTally(tally))
		}
	}
}

func TestResume(t *testing.T) {
	cursor := text(`{"cursor":"cc_evt_9.0-1"}`)
	for _, c := range []struct {
		name    string
		resume  Resume
		streams int
		end     func(*peer)
		second  []uint64 // after 1, 2, [cursor,] 3; 0: a cursor
		query   string   // of the second upgrade request
		want    string
	}{
		{"by id after a restart", ResumeByID, 1, func(p *peer) { p.send(serverCloseFrame(1012)) }, []uint64{4},
			"since=cc_evt_0000000000000000003",
			"lost 0, disordered 0, duplicated 0, repeated 0, resumed 1, closed map[1012:1]"},
		{"by id after a break", ResumeByID, 1, func(*peer) {}, []uint64{4},
			"since=cc_evt_0000000000000000003",
			"lost 0, disordered 0, duplicated 0, repeated 0, resumed 1, closed map[1006:1]"},
		{"by id, one account: a repeat is a fault", ResumeByID, 1, func(*peer) {}, []uint64{3, 4},
			"since=cc_evt_0000000000000000003", "lost 0, disordered 0, duplicated 1, repeated 0"},
		{"by id, many accounts: a repeat is allowed", ResumeByID, 2, func(*peer) {}, []uint64{2, 3, 4},
			"since=cc_evt_0000000000000000003", "lost 0, disordered 0, duplicated 0, repeated 2"},
		{"a gap is a gap", ResumeByID, 2, func(*peer) {}, []uint64{5},
			"since=cc_evt_0000000000000000003", "lost 1, disordered 0"},
		{"by cursor: what came after it comes again", ResumeByCursor, 2, func(*peer) {}, []uint64{3, 4},
			"cursor=true&since=cc_evt_9.0-1", "lost 0, disordered 0, duplicated 0, repeated 1"},
		{"by cursor: what it covers must not", ResumeByCursor, 2, func(*peer) {}, []uint64{2, 3, 4},
			"cursor=true&since=cc_evt_9.0-1", "lost 0, disordered 0, duplicated 1, repeated 1"},
		{"by cursor: the next one covers only what came before it", ResumeByCursor, 2, func(*peer) {},
			[]uint64{0, 3, 0, 4},
			"cursor=true&since=cc_evt_9.0-1", "lost 0, disordered 0, duplicated 0, repeated 1"},
		{"by cursor: and that it does", ResumeByCursor, 2, func(*peer) {}, []uint64{3, 0, 3, 4},
			"cursor=true&since=cc_evt_9.0-1", "lost 0, disordered 0, duplicated 1, repeated 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, false, func(p *peer) {
				if p.upgrade > 1 {
					for _, n := range c.second {
						if n == 0 {
							p.send(cursor)
							continue
						}
						p.send(events(n)...)
					}

					p.discardInput()
					return
				}

				p.send(events(1, 2)...)
				if c.resume == ResumeByCursor {
					p.send(cursor)
				}

				p.send(events(3)...)
				c.end(p)
			})

			l := openLoad(t,
				s.loadConfig(func(cfg *Config) { cfg.Resume, cfg.Groups[0].Streams = c.resume, c.streams }))
			events := slices.DeleteFunc(slices.Clone(c.second), func(n uint64) bool { return n == 0 })
			tally := await(t, l, "the second connection",
				func(t *Tally) bool { return t.Deliveries == uint64(3+len(events)) })
			if got := describeTally(tally); !strings.Contains(got, c.want) || tally.Foreign != 0 {
				t.Error(got)
			}
			if countOf(s, c.query) != 1 {
				t.Errorf("requested %q", s.queries)
			}
		})
	}
}

func TestSomeClosesAreForGood(t *testing.T) {
	s := newServer(t, false, func(p *peer) { p.send(serverCloseFrame(4003)) })
	l := openLoad(t, s.loadConfig(func(cfg *Config) { cfg.Resume = ResumeByID }))
	await(t, l, "the close", func(t *Tally) bool { return t.Closed[4003] == 1 })
	time.Sleep(20 * time.Millisecond) // Pause is one millisecond
	if n := countOf(s, ""); n != 1 {
		t.Errorf("%d upgrades", n)
	}
}

func TestStalledSubscribersDoNotRead(t *testing.T) {
	const sockets = 40
	s := newServer(t, false, func(p *peer) {
		p.send(events(1)...)
		p.discardInput()
	})

	l := openLoad(t, s.loadConfig(func(cfg *Config) { cfg.Groups[0].Sockets, cfg.Stalled = sockets, .05 }))
	tally := await(t, l, "the others", func(t *Tally) bool { return t.Deliveries == sockets-2 })
	if all, reading := l.Subscribers(); all != sockets || reading != sockets-2 || tally.Stalled != 2 ||
		tally.Open != sockets {
		t.Errorf("%d of %d read, %d stalled, %s", reading, all, tally.Stalled, describeTally(tally))
	}
	if n := l.Outstanding([]uint64{1}); n != 0 {
		t.Errorf("%d outstanding", n)
	}

	s.CloseClientConnections() // excludes hijacked connections, which end when the listener is closed
	s.Config.Close()
}

func TestTheEndOfAStalledSubscriberIsSeen(t *testing.T) {
	s := newServer(t, false, func(p *peer) { p.send(events(1)...) })
	l := openLoad(t, s.loadConfig(func(cfg *Config) { cfg.Stalled = 1 }))
	tally := await(t, l, "the end", func(t *Tally) bool { return t.StalledEnd == 1 })
	if tally.Deliveries != 0 || tally.Open != 0 {
		t.Error(describeTally(tally))
	}
}

func TestABusyServerIsTriedAgainAndARefusalIsAnError(t *testing.T) {
	s := newServer(t, false, (*peer).discardInput)
	s.refuse = []int{503, 429, 500}
	l := openLoad(t, s.loadConfig(nil))
	if refused := l.Refused(); refused[503] != 1 || refused[429] != 1 || refused[500] != 1 {
		t.Errorf("refused %v", refused)
	}

	s.refuse = []int{403}
	l, err := New(s.loadConfig(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	var refusal *Refusal
	if err := l.Connect(t.Context()); !errors.As(err, &refusal) || refusal.Status != 403 || refusal.Body != "no" {
		t.Errorf("connecting: %v", err)
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	listener.Close()
	l, err := New(Config{URL: "ws://" + listener.Addr().String(), Run: testRun, Groups: []Group{{Sockets: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	if err := l.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("connecting: %v", err)
	}
}

func TestUnknownCertificatesAreNotTrusted(t *testing.T) {
	s := newServer(t, true, (*peer).discardInput)
	l, err := New(s.loadConfig(func(cfg *Config) { cfg.TLS = nil }))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Connect(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("connecting: %v", err)
	}
}

func TestRampAndSources(t *testing.T) {
	s := newServer(t, false, (*peer).discardInput)
	began := time.Now()
	l := openLoad(t, s.loadConfig(func(cfg *Config) {
		cfg.Groups[0].Sockets, cfg.Ramp = 21, 200
		cfg.Sources = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")}
	}))

	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("21 connections at 200 a second took %v", took)
	}
	if open := l.Tally().Open; open != 21 {
		t.Errorf("%d are open", open)
	}
}

func TestNoDescriptorIsLeft(t *testing.T) {
	s := newServer(t, true, func(p *peer) {
		if p.upgrade%2 == 0 {
			p.discardInput()
		}
	})

	before := countDescriptors(t)
	l, err := New(s.loadConfig(func(cfg *Config) { cfg.Groups[0].Sockets, cfg.Resume = 30, ResumeByID }))
	if err != nil {
		t.Fatal(err)
	}

	if err := l.Connect(t.Context()); err != nil {
		t.Error(err)
	}

	await(t, l, "resumes", func(t *Tally) bool { return t.Resumed > 10 })
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if open := l.Tally().Open; open != 0 {
		t.Errorf("%d connections are left", open)
	}

	// the server closes its end later
	for began := time.Now(); countDescriptors(t) > before; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("%d descriptors, %d before", countDescriptors(t), before)
		}
	}
}

func countDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestConfigIsValidated(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"scheme": func(c *Config) { c.URL = "ftp://x" }, "host": func(c *Config) { c.URL = "ws:///x" },
		"run": func(c *Config) { c.Run = "short" }, "groups": func(c *Config) { c.Groups = nil },
		"sockets": func(c *Config) { c.Groups = []Group{{}} }, "stalled": func(c *Config) { c.Stalled = 1.1 },
		"ramp": func(c *Config) { c.Ramp = -1 }, "resume": func(c *Config) { c.Resume = "always" },
	} {
		cfg := Config{URL: "wss://x/y", Run: testRun, Groups: []Group{{Sockets: 1}}}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}

		change(&cfg)
		if cfg.Validate() == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}
