package webhook

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

var entered = event.Facts{Name: event.NameQueueCallEntered, QueueID: "sales", CallID: "c1"}

// TestSignaturesAreThoseOfStandardWebhooks: testdata/standardwebhooks.json was made with
// sign of the package standardwebhooks 1.1.1 of npm; that of PyPI, 1.1.0, signs the same.
func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	text, err := os.ReadFile("testdata/standardwebhooks.json")
	must(t, err)
	var cases []struct {
		Secret, ID, Body, Signature string
		Timestamp                   int64
	}
	must(t, json.Unmarshal(text, &cases))

	for _, c := range cases {
		key, err := parseSecret(c.Secret)
		must(t, err)
		if got := signature(key, c.ID, strconv.FormatInt(c.Timestamp, 10), []byte(c.Body)); got != c.Signature {
			t.Errorf("%s: %s, want %s", c.ID, got, c.Signature)
		}
		if got := formatSecret(key); got != c.Secret {
			t.Errorf("the secret is written as %s", got)
		}
	}
}

func TestEventsAreSignedAndInOrder(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		e := newEnv(t, at, fastSettings(), 3)
		all, sales, cloud := e.startReceiver(nil), e.startReceiver(nil), e.startReceiver(nil)
		e.topic.put(0, "shop", entered, `{"n":"before the webhook"}`)
		made, secret, err := e.service.Create(t.Context(), "root", Config{URL: all.url})
		must(t, err)
		e.createWebhook(
			Config{URL: sales.url,
				Filters: identity.Filter{AccountIDs: []string{"shop"}, QueueIDs: []string{"sales"},
					Names: []string{"queue.*"}}})
		e.createWebhook(
			Config{URL: cloud.url, Format: FormatCloudEvents, Filters: identity.Filter{AccountIDs: []string{"kiosk"}}})
		e.deliver()
		var want, wantSales, wantCloud []event.ID

		for i := range 40 {
			e.topic.put(i%3, "stranger", entered, `{}`)
			id := e.topic.put(0, "shop", entered, `{}`)
			want, wantSales = append(want, id), append(wantSales, id)
			want = append(want,
				e.topic.put(0, "shop", event.Facts{Name: event.NameQueueCallEntered, QueueID: "support"}, `{}`))
			id = e.topic.put(1, "kiosk", event.Facts{Name: event.NameAgentLogin, AgentID: "a"}, `{}`)
			want, wantCloud = append(want, id), append(wantCloud, id)
		}

		all.await(t, want)
		sales.await(t, wantSales)
		cloud.await(t, wantCloud)
		key, err := parseSecret(secret)
		must(t, err)

		for _, r := range all.requests() {
			if r.header.Get("webhook-signature") != signature(key, r.id, r.header.Get("webhook-timestamp"),
				[]byte(r.body)) {
				t.Fatalf("wrong signature: %v", r)
			}
			if id, err := event.MessageID([]byte(r.body)); err != nil || id.String() != r.id ||
				r.header.Get("Content-Type") != "application/json" {
				t.Fatalf("not the message: %v", r)
			}
		}

		first := cloud.requests()[0]
		var structured struct {
			SpecVersion, ID, Source, Type, Time, DataContentType string
			Data                                                 struct{ ID string }
		}
		must(t, json.Unmarshal([]byte(first.body), &structured))

		if got := structured; got.SpecVersion != "1.0" || got.ID != first.id || got.Source != "/accounts/kiosk" ||
			got.Type != "trunkline.agent.login" ||
			got.Time != "2026-11-18T11:06:40Z" || got.DataContentType != "application/json" ||
			got.Data.ID != first.id ||
			!strings.HasPrefix(first.header.Get("Content-Type"), "application/cloudevents+json") {
			t.Errorf("not the CloudEvent: %+v %v", got, first.header)
		}

		if w := e.findWebhook(made.ID); w.Status != StatusActive || w.Failures != 0 {
			t.Errorf("the webhook is %+v", w)
		}
	})
}

func TestASlowReceiverDelaysNobody(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	release := make(chan struct{})
	slow := e.startReceiver(func(w http.ResponseWriter, _ *http.Request) { <-release })

	t.Cleanup(sync.OnceFunc(func() {
		select {
		case <-release:
		default:
			close(release)
		}
	}))

	fast := e.startReceiver(nil)
	e.createWebhook(Config{URL: slow.url})
	e.createWebhook(Config{URL: fast.url})
	e.deliver()
	var want []event.ID
	data := `{"pad":"` + strings.Repeat("x", 4<<10) + `"}`

	for range 4 * maxQueuedBytes / (4 << 10) { // far more than waits in memory
		want = append(want, e.topic.put(0, "shop", entered, data))
	}

	fast.await(t, want)
	if n := len(slow.ids()); n > 1 {
		t.Errorf("the slow receiver has %d requests at a time", n)
	}

	close(release)
	slow.await(t, want)
}

func TestReceiversThatHarmNobody(t *testing.T) {
	private := httptest.NewServer(
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer private.Close()

	cases := map[string]struct {
		handle  http.HandlerFunc
		works   bool
		message string
	}{
		"redirects to a private address": {handle: http.RedirectHandler(private.URL,
			http.StatusTemporaryRedirect).ServeHTTP, message: "redirects are not followed"},
		"fails": {handle: respond(http.StatusInternalServerError), message: "status 500"},
		"closes the connection": {handle: func(http.ResponseWriter,
			*http.Request) {
			panic(http.ErrAbortHandler)
		}, message: "connection to the receiver failed"},
		"answers without end": {works: true, handle: func(w http.ResponseWriter, r *http.Request) {
			for block := make([]byte, 32<<10); r.Context().Err() == nil; {
				_, _ = w.Write(block)
			}
		}},
		"lies about its length": {works: true, handle: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte("less"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
		"sends endless headers": {message: "failed", handle: func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100 {
				w.Header().Set("X-"+strconv.Itoa(i), strings.Repeat("y", 1000))
			}
		}},
	}

	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	targets, made := map[string]*testReceiver{}, map[string]Webhook{}
	for name, c := range cases {
		targets[name] = e.startReceiver(c.handle)
		made[name] = e.createWebhook(Config{URL: targets[name].url})
	}

	e.deliver()
	want := []event.ID{e.topic.put(0, "shop", entered, `{}`), e.topic.put(0, "shop", entered, `{}`)}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.works {
				targets[name].await(t, want)
				return
			}
			if w := e.awaitStatus(made[name].ID, StatusPaused); !strings.Contains(w.LastError, c.message) {
				t.Errorf("paused for %q", w.LastError)
			}

			targets[name].answer(nil)
			_, err := e.service.Retry(t.Context(), "root", made[name].ID, 0)
			must(t, err)
			targets[name].await(t, want)
		})
	}
}

func TestAddressesThatMayNotBeReached(t *testing.T) {
	settings := fastSettings()
	settings.AllowNetworks = nil
	e := newEnv(t, testdb.SQLite(t), settings, 1)
	target := e.startReceiver(nil)
	made := e.createWebhook(Config{URL: strings.Replace(target.url, "127.0.0.1", "localhost", 1)})
	reg, _ := e.deliver()
	e.topic.put(0, "shop", entered, `{}`)
	w := e.awaitStatus(made.ID, StatusPaused)
	if !strings.Contains(w.LastError, "not public (loopback), and webhook.allow_networks does not have it") ||
		len(target.requests()) > 0 {
		t.Errorf("paused for %q after %d requests", w.LastError, len(target.requests()))
	}

	waitFor(t, "the metric of paused webhooks is 1", func() bool {
		metrics, err := testutil.GatherAndCount(reg, "trunkline_webhook_paused")
		return err == nil && metrics == 1 && strings.Contains(e.log.String(), `msg="webhook paused" webhook=`+made.ID)
	})
}

func TestAPausedWebhookGoesOnWithARetry(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		e := newEnv(t, at, fastSettings(), 2)
		target, other := e.startReceiver(respond(http.StatusServiceUnavailable)), e.startReceiver(nil)
		made := e.createWebhook(Config{URL: target.url})
		e.createWebhook(Config{URL: other.url})
		_, stop := e.deliver()

		put := func(n int) (ids []event.ID) {
			for i := range n {
				ids = append(ids, e.topic.put(i%2, []string{"shop", "kiosk"}[i%2], entered, `{}`))
			}
			return ids
		}

		want := put(10)
		w := e.awaitStatus(made.ID, StatusPaused)
		if w.Failures < e.settings.pauseAfter() || w.LastError == "" || w.PausedAt.IsZero() {
			t.Errorf("paused: %+v", w)
		}

		want = append(want, put(10)...) // while it is paused
		other.await(t, want)
		stop() // another node continues
		_, stop = e.deliver()
		want = append(want, put(10)...)
		other.await(t, want)
		target.answer(nil)
		before := len(target.requests())
		_, err := e.service.Retry(t.Context(), "root", made.ID, 0)
		must(t, err)
		target.await(t, want)

		if first := target.requests()[before]; first.id != want[0].String() && first.id != want[1].String() {
			t.Errorf("goes on with %s", first.id)
		}
		if w := e.findWebhook(made.ID); w.Status != StatusActive || w.LastError != "" {
			t.Errorf("after the retry: %+v", w)
		}

		// A retry from an event: only later events are delivered again.
		before = len(target.requests())
		_, err = e.service.Retry(t.Context(), "root", made.ID, want[7])
		must(t, err)
		waitFor(t, "later events come again", func() bool { return len(target.requests()) >= before+len(want)-8 })
		stop()

		for _, r := range target.requests()[before:] {
			if id, _ := event.ParseID(r.id); id <= want[7] {
				t.Errorf("%s comes again", r.id)
			}
		}

		if n := len(target.requests()) - before; n != len(want)-8 {
			t.Errorf("%d events come again, want %d", n, len(want)-8)
		}
		if _, err := e.service.Retry(t.Context(), "root", made.ID,
			want[7]+event.MaxPartitions); fault.KindOf(err) != fault.KindGone {
			t.Errorf("an event that is not there: %v", err)
		}
		if _, err := e.service.Retry(t.Context(), "root", made.ID,
			event.FirstID(want[7].Time(), 700)); fault.KindOf(err) != fault.KindGone {
			t.Errorf("an event of a partition that is not there: %v", err)
		}
	})
}

func TestStatus410PausesAtOnce(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), DefaultSettings(), 1)
	e.settings = fastSettings()
	e.service.settings.AllowNetworks = e.settings.AllowNetworks // with the ordinary back-off
	target := e.startReceiver(respond(http.StatusGone))
	made := e.createWebhook(Config{URL: target.url})
	e.deliver()
	e.topic.put(0, "shop", entered, `{}`)

	if w := e.awaitStatus(made.ID, StatusPaused); w.Failures != 1 || !strings.Contains(w.LastError, "410") {
		t.Errorf("paused: %+v", w)
	}
}

// TestTwoOwnersOfAPartition: the group has given the partitions to another node, and
// the first one has not noticed.
func TestTwoOwnersOfAPartition(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		e := newEnv(t, at, fastSettings(), 2)
		target := e.startReceiver(nil)
		e.createWebhook(Config{URL: target.url})

		var want []event.ID
		put := func() {
			for range 20 {
				want = append(want, e.topic.put(0, "shop", entered, `{}`), e.topic.put(1, "kiosk", entered, `{}`))
			}
		}

		e.deliver()
		put()
		target.await(t, want)
		e.deliver()

		var last time.Time
		waitFor(t, "a node finds that it was replaced", func() bool {
			if time.Since(last) > checkpointInterval/4 { // positions are stored when they move
				put()
				last = time.Now()
			}
			return strings.Contains(e.log.String(), "delivered by another node")
		})

		put()
		target.await(t, want)
	})
}

// TestPositionsThatRetentionDeletes: the undelivered events of a paused webhook are
// lost, logged and counted.
func TestPositionsThatRetentionDeletes(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	target := e.startReceiver(respond(http.StatusGone))
	made := e.createWebhook(Config{URL: target.url})
	reg, _ := e.deliver()
	e.topic.put(0, "shop", entered, `{}`)
	e.awaitStatus(made.ID, StatusPaused)
	first := len(target.requests())

	for range 5 {
		e.topic.put(0, "shop", entered, `{}`)
	}

	waitFor(t, "the position of the webhook is stored", func() bool {
		rows, err := listPositions(t.Context(), e.db, 0)
		at, _, err2 := e.service.positions.Find(t.Context(), e.db, 0)
		return err == nil && err2 == nil && rows[made.ID].next == 0 && at.Offset == 6
	})

	e.topic.Delete(event.TopicEvents, 0, 6)
	target.answer(nil)
	_, err := e.service.Retry(t.Context(), "root", made.ID, 0)
	must(t, err)

	waitFor(t, "the loss is counted", func() bool {
		return strings.Contains(e.log.String(), "events lost") &&
			metricValue(t, reg, "trunkline_webhook_lost_records_total") == 6
	})

	last := e.topic.put(0, "shop", entered, `{}`)
	waitFor(t, "the next event is received", func() bool {
		got := target.requests()[first:]
		return len(got) == 1 && got[0].id == last.String()
	})
}
