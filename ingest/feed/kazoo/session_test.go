package kazoo

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/event"
	"trunkline/ingest/feed"
	"trunkline/internal/setting"
	"trunkline/internal/testservice"
)

// callEvent is an event of a channel, as ecallmgr publishes it: counters are strings.
func callEvent(name, call string, more map[string]any) string {
	members := map[string]any{
		"Event-Category": "call_event", "Event-Name": name, "App-Name": "freeswitch", "App-Version": "1.0",
		"Msg-ID": "1795169700123456", "Node": "freeswitch@fs1", "Call-ID": call, "Call-Direction": "outbound",
		"Timestamp": 63962388910, "Channel-Created-Time": "1795169700123456",
		"Custom-Channel-Vars": map[string]any{"Account-ID": "acme", "Realm": "acme.example.com"},
	}

	for key, value := range more {
		members[key] = value
	}

	return object(members)
}

// report is a call record, as ecallmgr publishes it.
func report(call string) string {
	return object(map[string]any{
		"Event-Category": "cdr", "Event-Name": "report", "App-Name": "freeswitch", "App-Version": "1.0", "Msg-ID": "m",
		"Account-ID": "acme", "Call-ID": call, "Timestamp": 63962388895, "Channel-Created-Time": 1795169700123456,
		"Call-Interaction": map[string]any{"Id": "63962388895-abcdef01", "Key": "abcdef01", "Timestamp": 63962388895,
			"Is-Root": true},
		"Duration-Seconds": 10, "Billing-Seconds": 7, "Ringing-Seconds": 3, "Hangup-Cause": "NORMAL_CLEARING",
	})
}

func TestMessagesOfEachExchangeBecomeEvents(t *testing.T) {
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	s := openSession(t,
		newTestPlatform(t, feedConfig(t, address),
			accountsByName{"acme": "acme", "sub.example.com": "sub", "fixed": "other"}, nil))
	type want struct {
		topic, format, account string
		subjects               []string
	}

	for _, c := range []struct {
		exchange, key, body string
		want                want
	}{
		{"callevt", "call.CHANNEL_ANSWER.c1", callEvent("CHANNEL_ANSWER", "c1", nil),
			want{event.TopicRaw, "kazoo.call_event", "acme", []string{"c1"}}},
		{"cdr", "cdr.report.acme.c1", report("c1"), want{event.TopicCDRRaw, "kazoo.cdr", "acme", nil}},
		{"conference", "conference.event.add-member.acme.conf.c2", object(map[string]any{
			"Event-Category": "conference", "Event-Name": "event", "Event": "add-member", "Conference-ID": "conf",
			"Account-ID": "acme", "Call-ID": "c2",
		}), want{event.TopicRaw, "kazoo.conference", "acme", []string{"c2"}}},
		{"kapps", "acdc_stats.call.acme.q1", object(map[string]any{
			"Event-Category": "acdc_call_stat", "Event-Name": "handled", "Account-ID": "acme", "Queue-ID": "q1",
			"Call-ID": "c3", "Agent-ID": "a1", "Handled-Timestamp": 63962388905,
		}), want{event.TopicRaw, "kazoo.acdc", "acme", []string{"a1", "c3"}}},
		{"kapps", "acdc_stats.status.acme.a1", status("acme", "a1", "paused"),
			want{event.TopicRaw, "kazoo.acdc", "acme", []string{"a1"}}},
		{"kapps", "acdc.queue.agent_change.acme.q1", object(map[string]any{
			"Event-Category": "queue", "Event-Name": "agent_change", "Account-ID": "acme", "Queue-ID": "q1",
			"Agent-ID": "a1", "Change": "ringing",
		}), want{event.TopicRaw, "kazoo.acdc", "acme", []string{"a1"}}},
		{"kapps", "acdc.agent.action.login.acme.a2", object(map[string]any{
			"Event-Category": "agent", "Event-Name": "login", "Account-ID": "acme", "Agent-ID": "a2",
		}), want{event.TopicRaw, "kazoo.acdc", "acme", []string{"a2"}}},
		{"callmgr", "acdc.member.call.acme.q1", object(map[string]any{
			"Event-Category": "member", "Event-Name": "call", "Account-ID": "acme", "Queue-ID": "q1",
			"Call": map[string]any{"Call-ID": "c4", "Caller-ID-Number": "1001"},
		}), want{event.TopicRaw, "kazoo.acdc", "acme", []string{"c4"}}},
		{"registrar", "registration.success.sub%2Eexample%2Ecom.u1", object(map[string]any{
			"Event-Category": "directory", "Event-Name": "reg_success", "Contact": "sip:u1@192.0.2.1",
			"Event-Timestamp": 63962388900, "Expires": 60, "Realm": "sub.example.com", "Username": "u1",
		}), want{event.TopicRaw, "kazoo.call_event", "sub", []string{"u1@sub.example.com"}}},
		{"kapps", "acdc_stats.status.nobody.a9", status("nobody", "a9", "ready"),
			want{event.TopicRaw, "kazoo.acdc", "", []string{"a9"}}},
		{"kapps", "acdc.queue.x.y", `{"Event-Category": "something"}`, want{event.TopicRaw, "", "", nil}},
		{"kapps", "acdc.queue.x.y", `not JSON`, want{event.TopicRaw, "", "", nil}},
	} {
		kazoo.publish(t, c.exchange, c.key, c.body)
		e := read(t, s, 1)[0]
		if got := (want{e.Topic, e.Format, e.Account, e.Subjects}); string(e.Value) != c.body ||
			fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v; value %s", c.key, got, c.want, e.Value)
		}
		if e.Account == "" && strings.Contains(c.key, "nobody") && !slices.Equal(e.Names, []string{"nobody"}) {
			t.Errorf("%s: names %v", c.key, e.Names)
		}

		acknowledgeEvent(t, s, e)
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	wantNothingMore(t, kazoo, openSession(t, s.platform))
}

func TestACompressedMessageIsRead(t *testing.T) {
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	s := openSession(t, newTestPlatform(t, feedConfig(t, address), accountsByName{"acme": "acme"}, nil))
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(status("acme", "a1", "ready"))) // into memory

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	err := kazoo.channel.PublishWithContext(t.Context(), "kapps", "acdc_stats.status.acme.a1", false, false,
		amqp.Publishing{ContentEncoding: "gzip", Body: packed.Bytes()})
	if err != nil {
		t.Fatal(err)
	}

	if e := read(t, s, 1)[0]; string(e.Value) != status("acme", "a1", "ready") || e.Format != "kazoo.acdc" {
		t.Errorf("%+v %s", e, e.Value)
	}
}

func TestTheCallRecordOfAClickToCallHasItsOriginationID(t *testing.T) {
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	s := openSession(t, newTestPlatform(t, feedConfig(t, address), accountsByName{"acme": "acme"}, nil))
	origination := map[string]any{"Origination-Call-ID": "c2c-1"}
	kazoo.publish(t, "callevt", "call.CHANNEL_CREATE.c1", callEvent("CHANNEL_CREATE", "c1", origination))
	kazoo.publish(t, "cdr", "cdr.report.acme.c1", report("c1"))
	kazoo.publish(t, "callevt", "call.CHANNEL_DESTROY.c1", callEvent("CHANNEL_DESTROY", "c1", origination))
	kazoo.publish(t, "cdr", "cdr.report.acme.c9", report("c9"))
	kazoo.publish(t, "callevt", "call.CHANNEL_DESTROY.c9", callEvent("CHANNEL_DESTROY", "c9", nil))
	all := read(t, s, 6)
	var got []string

	for _, e := range all {
		got = append(got,
			fmt.Sprintf("%s %v", e.Format, bytes.Contains(e.Value, []byte(`"Origination-Call-ID":"c2c-1"`))))
	}

	want := []string{"kazoo.call_event true", "kazoo.cdr true", "kazoo.call_event true", "kazoo.cdr true",
		"kazoo.cdr false", "kazoo.call_event false"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestWithoutTheExchangeCDREveryDestroyIsACallRecord(t *testing.T) {
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	cfg := feedConfig(t, address)
	cfg.Events = []string{"callevt call.CHANNEL_DESTROY.*", "kapps acdc_stats.status.*.*"}
	s := openSession(t, newTestPlatform(t, cfg, accountsByName{"acme": "acme"}, nil))
	kazoo.publish(t, "callevt", "call.CHANNEL_CREATE.c1", callEvent("CHANNEL_CREATE", "c1", nil))
	kazoo.publish(t, "callevt", "call.CHANNEL_DESTROY.c1", callEvent("CHANNEL_DESTROY", "c1", nil))
	all := read(t, s, 2)
	if all[0].Topic != event.TopicRaw || all[1].Topic != event.TopicCDRRaw {
		t.Errorf("%+v", all)
	}

	acknowledgeEvent(t, s, all[0]) // Kafka has the event and not the call record yet
	if len(s.unacknowledged) != 1 {
		t.Errorf("%d messages are not acknowledged, want 1", len(s.unacknowledged))
	}

	acknowledgeEvent(t, s, all[1])
	if len(s.unacknowledged) != 0 {
		t.Errorf("%d messages are not acknowledged, want 0", len(s.unacknowledged))
	}

	wantNothingMore(t, kazoo, s)
	if words := s.platform.Subscription(); !slices.Equal(words, cfg.Events) {
		t.Errorf("subscription %q", words)
	}
}

func TestACutConnectionLosesAndRepeatsNothing(t *testing.T) {
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}

	line := startProxy(t, at.Host)
	cfg := feedConfig(t, address)
	at.Host = line.address
	cfg.URL = setting.URL(at.String())
	p := newTestPlatform(t, cfg, accountsByName{"acme": "acme"}, nil)
	s := openSession(t, p)

	send := func(from, to int) {
		for i := from; i < to; i++ {
			kazoo.publish(t, "kapps", "acdc_stats.status.acme.a", status("acme", fmt.Sprint("agent", i), "ready"))
		}
	}

	var got []string
	take := func(n int) feed.Event {
		all := read(t, s, n)
		for _, e := range all {
			got = append(got, e.Subjects[0])
		}
		return all[n-1]
	}

	send(0, 20)
	stored := take(20)
	line.cut() // Kafka has them, but RabbitMQ has no acknowledgement

	if err := s.Acknowledge(t.Context(), stored.Delivery); err == nil {
		// The write may have gone into the dead connection; either is right.
		t.Log("acknowledged into the cut connection")
	}
	if _, err := s.Read(t.Context()); err == nil {
		t.Fatal("a cut connection reads on")
	}
	if err := s.Close(); err != nil {
		t.Log(err) // the peer is gone already
	}

	send(20, 30)
	s = openSession(t, p)
	if s.overflow {
		t.Error("a hole in a queue that is not full")
	}

	acknowledgeEvent(t, s, take(10))
	var want []string
	for i := range 30 {
		want = append(want, fmt.Sprint("agent", i))
	}

	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}

	// What Kafka does not have comes again.
	send(30, 33)
	got, want = nil, []string{"agent30", "agent31", "agent32"}
	take(3)
	line.cut()
	_ = s.Close() // as above
	s = openSession(t, p)
	got = nil
	take(3)

	if !slices.Equal(got, want) {
		t.Errorf("got %v again", got)
	}
}

func TestOneNodeConsumes(t *testing.T) {
	address := testservice.RabbitMQ(t)
	dial(t, address)
	cfg := feedConfig(t, address)
	first := openSession(t, newTestPlatform(t, cfg, nil, nil))
	second := newTestPlatform(t, cfg, nil, nil)
	_, err := second.Connect(t.Context())
	var refusal *feed.Refusal
	if err == nil || errors.As(err, &refusal) {
		t.Fatalf("the second: %v, want an error that passes", err)
	}

	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	openSession(t, second)
}

func TestAQueueThatWasFullIsAHole(t *testing.T) {
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	p := newTestPlatform(t, feedConfig(t, address), accountsByName{"acme": "acme"}, nil)
	p.maxQueued, p.prefetch = 10, 5
	s := openSession(t, p)

	send := func(n int) {
		for i := range n {
			kazoo.publish(t, "kapps", "acdc_stats.status.acme.a", status("acme", fmt.Sprint("agent", i), "ready"))
		}
	}

	holes := func(n int) (with []string) {
		for n > 0 {
			events, err := s.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for _, e := range events {
				n--
				if e.Hole > 0 {
					with = append(with, e.Subjects[0])
				}
				acknowledgeEvent(t, s, e)
			}
		}

		return with
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	send(15) // while no node reads: 0 to 4 are dropped
	s = openSession(t, p)
	if got := holes(10); !slices.Equal(got, []string{"agent5"}) {
		t.Errorf("holes at %v", got)
	}

	send(25) // while Kafka is slow: 5 are with the reader, 10 wait, 10 are dropped
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		noticed := s.overflow
		s.mu.Unlock()

		if noticed {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the full queue was not noticed")
		}
	}

	if got := holes(15); len(got) == 0 || got[0] != "agent0" {
		t.Errorf("holes at %v", got)
	}
}

func TestRefusalsSayWhatToChange(t *testing.T) {
	right := testservice.RabbitMQUser{
		Name: "trunkline", Configure: `^trunkline\..*$`, Write: `^trunkline\..*$`,
		Read: `^(trunkline\..*|callevt|cdr|conference|kapps|callmgr|registrar)$`,
	}
	server := testservice.OwnRabbitMQ(t, right,
		testservice.RabbitMQUser{Name: "nothing"},
		testservice.RabbitMQUser{Name: "noread", Configure: right.Configure, Write: right.Write,
			Read: `^trunkline\..*$`})
	kazoo := dial(t, server.URL)

	as := func(login, vhost string) feed.Config {
		cfg := feedConfig(t, server.URL)
		cfg.URL = setting.URL("amqp://" + login + "@" + server.Addr + "/" + vhost)
		return cfg
	}

	other := as("trunkline:trunkline", "")
	other.Events = []string{"nowhere key.#"}
	old := as("trunkline:trunkline", "")
	if _, err := kazoo.channel.QueueDeclare(queuePrefix+old.Name, true, false, false, false,
		amqp.Table{"x-max-length": int64(5)}); err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		cfg    feed.Config
		advice string
	}{
		"a wrong password": {as("trunkline:wrong", ""), "rabbitmqctl change_password trunkline"},
		"an unknown user":  {as("stranger:x", ""), "rabbitmqctl add_user stranger"},
		"an unknown vhost": {as("trunkline:trunkline", "nowhere"), "rabbitmqctl list_vhosts"},
		"no right to configure": {as("nothing:nothing", ""),
			`rabbitmqctl set_permissions -p / nothing '^trunkline\..*$' '^trunkline\..*$' '^(trunkline\..*|callevt|cdr|conference|kapps|callmgr|registrar)$'`},
		"no right to read":   {as("noread:noread", ""), "rabbitmqctl set_permissions -p / noread"},
		"a missing exchange": {other, "rabbitmqctl -p / list_exchanges"},
		"another queue":      {old, "rabbitmqctl -p / delete_queue " + queuePrefix + old.Name},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newTestPlatform(t, c.cfg, nil, nil).Connect(t.Context())
			var refusal *feed.Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("%v, want a refusal", err)
			}

			if !strings.Contains(refusal.Advice, c.advice) {
				t.Errorf("advice %q, want %q in it", refusal.Advice, c.advice)
			}
			if strings.Contains(err.Error()+refusal.Advice, ":wrong") {
				t.Error("the error contains the password")
			}
		})
	}

	t.Run("the rights of the page suffice", func(t *testing.T) {
		s := openSession(t, newTestPlatform(t, as("trunkline:trunkline", ""), accountsByName{"acme": "acme"}, nil))
		kazoo.publish(t, "kapps", "acdc_stats.status.acme.a1", status("acme", "a1", "ready"))
		acknowledgeEvent(t, s, read(t, s, 1)[0])
	})

	t.Run("a killed RabbitMQ", func(t *testing.T) {
		p := newTestPlatform(t, as("trunkline:trunkline", ""), accountsByName{"acme": "acme"}, nil)
		s := openSession(t, p)
		kazoo.publish(t, "kapps", "acdc_stats.status.acme.a1", status("acme", "a1", "ready"))
		acknowledgeEvent(t, s, read(t, s, 1)[0])
		server.Kill(t)

		if _, err := s.Read(t.Context()); err == nil {
			t.Error("a killed server is read")
		}

		_ = s.Close() // the server is gone
		var refusal *feed.Refusal
		if _, err := p.Connect(t.Context()); err == nil || errors.As(err, &refusal) {
			t.Errorf("without a server: %v, want an error that passes", err)
		}

		server.Start(t)
		kazoo = dial(t, server.URL)
		s = openSession(t, p)
		kazoo.publish(t, "kapps", "acdc_stats.status.acme.a2", status("acme", "a2", "ready"))

		for _, e := range read(t, s, 1) {
			if !slices.Equal(e.Subjects, []string{"a2"}) {
				t.Errorf("read %s", e.Value)
			}
		}
	})
}

func TestWordsOfEventsAreChecked(t *testing.T) {
	var cfg feed.Config
	cfg.SetDefaults()
	for _, word := range []string{"callevt", "callevt ", " call.#"} {
		cfg.Events = []string{word}
		if _, err := Constructor(nil)(cfg,
			feed.Deps{Accounts: accountsByName{}, Log: newTestPlatform(t, feed.Config{}, nil, nil).log}); err == nil {
			t.Errorf("%q is taken", word)
		}
	}
}

// Errors of a feed are shown to its account's administrators.
func TestTheErrorOfAnAddressHasNoPassword(t *testing.T) {
	for _, address := range []string{"amqp://kazoo:sec%zzret@rabbit:5672/", "amqp://kazoo:sec/ret@rabbit:5672/",
		"amqp://kazoo:sec ret@rabbit:5672/"} {
		p := &platform{url: address}
		_, _, err := p.dial(t.Context())
		if err == nil || strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "ret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
