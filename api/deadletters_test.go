package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/identity"
	"trunkline/ingest/deadletter"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
)

// feedAccounts is the directory as feeds see it.
type feedAccounts struct{ directory *identity.Directory }

func (d feedAccounts) Resolve(ref string) (string, bool) {
	account, ok := d.directory.Tree().Resolve(ref)
	return account.ID, ok
}

func (d feedAccounts) ByDomain(domain string) (string, bool) {
	account, ok := d.directory.Tree().ByDomain(domain)
	return account.ID, ok
}

// addDeadLetters adds the dead letters of an embedded broker.
func (e *env) addDeadLetters(deps *Deps, c *kafka.Cluster, p *kafka.Producer) {
	letters := deadletter.New(
		deadletter.Deps{LogReader: c, Producer: p,
			WithDirectory: func(_ context.Context, work func(feed.Directory) error) error {
				return work(feedAccounts{e.identity.Directory})
			}})
	deps.DeadLetters = deadletter.NewAccountLetters(letters, e.identity.Directory.Tree,
		feedAccounts{e.identity.Directory})
	e.broker = c
}

// storeDeadLetters stores dead letters of demo, of sub below it, of another tenant, of a feed's event of sub, of
// nobody, and one that cannot be sent back.
func (e *env) storeDeadLetters() {
	e.t.Helper()
	must(e.t, e.broker.EnsureTopics(e.t.Context(), topics.All(1)))
	p := e.broker.NewProducer(kafka.ProducerConfig{})
	defer func() { must(e.t, p.Close(e.t.Context())) }()

	for i, l := range []struct{ key, topic, names string }{
		{"demo", event.TopicRaw, ""}, {"sub", event.TopicRaw, ""}, {"stranger", event.TopicRaw, ""},
		{"", event.TopicRaw, "sub.demo.local"}, {"nobody", event.TopicRaw, ""}, {"demo", event.TopicEvents, ""},
	} {
		headers := []kafka.Header{
			{Key: event.HeaderErrorKind, Value: fmt.Appendf(nil, "kind%d", i%2)},
			{Key: event.HeaderError, Value: fmt.Appendf(nil, "reason %d", i)},
			{Key: event.HeaderOrigTopic, Value: []byte(l.topic)},
		}

		if l.names != "" {
			headers = append(headers, kafka.Header{Key: event.HeaderSource, Value: []byte("feed:pbx")},
				kafka.Header{Key: event.HeaderAccountNames, Value: []byte(l.names)})
		}

		must(e.t, p.Produce(e.t.Context(), kafka.Record{
			Topic: event.TopicDead, Partition: 0, Key: []byte(l.key), Value: fmt.Appendf(nil, `{"n":%d}`, i),
			Headers: headers,
		}))
	}
}

type deadLetterRows struct {
	Data []struct {
		Position, Kind, Reason, Key string
		Value                       map[string]int
	}
	Total        int
	Kinds        map[string]int
	Complete     bool
	NextStartKey string `json:"next_start_key"`
}

func (e *env) openLetters(h header, query string) (reasons string, page deadLetterRows) {
	e.t.Helper()
	e.ask(200, "GET", deadLettersPath+query, h, "", &page)
	for _, row := range page.Data {
		reasons += strings.TrimPrefix(row.Reason, "reason ")
	}
	return reasons, page
}

// An account sees the letters of its tree, whoever asks; nobody sees those of no account while there
// are several tenants.
func TestDeadLettersAreOfAnAccountsTree(t *testing.T) {
	e := newEnv(t)
	e.storeDeadLetters()
	admin := e.as("admin", "")
	reasons, page := e.openLetters(admin, "")
	if reasons != "5310" && len(reasons) != 4 || page.Total != 4 || page.Kinds["kind1"] != 3 ||
		page.Kinds["kind0"] != 1 || !page.Complete {
		t.Errorf("demo sees %s: %+v", reasons, page)
	}
	if reasons, _ := e.openLetters(e.as("admin", "sub"), ""); strings.Trim(reasons, "13") != "" || len(reasons) != 2 {
		t.Errorf("sub has %s", reasons)
	}

	e.ask(404, "GET", deadLettersPath, e.as("admin", "stranger"), "", nil)
	if reasons, page := e.openLetters(admin, "?kind=kind0&search=REASON&page_size=1"); reasons != "0" ||
		page.NextStartKey != "" || page.Total != 1 {
		t.Errorf("filtered: %s %+v", reasons, page)
	}
	if reasons, page := e.openLetters(admin, "?topic=cc.raw&page_size=2"); len(reasons) != 2 ||
		page.NextStartKey == "" || page.Total != 3 {
		t.Errorf("first page: %s %+v", reasons, page)
	}

	for _, other := range []string{"0:2", "0:4", "0:99", "9:0"} { // of another tenant, of nobody, and none
		for _, request := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/retry"}} {
			e.ask(404, request[0], deadLettersPath+"/"+other+request[1], admin, "", nil)
		}
	}

	for _, request := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/retry"}} {
		for _, forged := range []string{"x", "0:1@1", "-1:0", "0:-1", "0:99999999999999999999"} {
			w := e.ask(400, request[0], deadLettersPath+"/"+forged+request[1], admin, "", nil)
			if !strings.Contains(w.Body.String(), `"field":"position"`) {
				t.Errorf("%s: %s", forged, w.Body)
			}
		}
	}

	e.ask(403, "GET", deadLettersPath, e.as("alice", ""), "", nil)
}

func TestDeadLettersAreSentBackAndDiscardedOnce(t *testing.T) {
	e := newEnv(t)
	e.storeDeadLetters()
	admin := e.as("admin", "")
	var row struct {
		Key   string
		Value struct{ N int }
	}
	e.ask(200, "GET", deadLettersPath+"/0:1", admin, "", &row)

	if row.Key != "sub" || row.Value.N != 1 {
		t.Errorf("the letter is %+v", row)
	}

	e.ask(204, "DELETE", deadLettersPath+"/0:0", admin, "", nil)
	e.ask(204, "POST", deadLettersPath+"/0:1/retry", admin, "", nil)
	for _, again := range []string{"0:0", "0:1"} {
		e.ask(409, "DELETE", deadLettersPath+"/"+again, admin, "", nil)
		e.ask(409, "POST", deadLettersPath+"/"+again+"/retry", admin, "", nil)
	}

	e.ask(409, "POST", deadLettersPath+"/0:5/retry", admin, "", nil) // nothing reads cc.evt as raw records

	var sent struct{ Sent int }
	e.ask(200, "POST", deadLettersPath+"/retry", admin, `{"kind":"kind0"}`, &sent)
	if sent.Sent != 0 {
		t.Errorf("%d of kind0 sent", sent.Sent)
	}

	e.ask(200, "POST", deadLettersPath+"/retry", admin, `{}`, &sent)
	if sent.Sent != 1 {
		t.Errorf("%d sent", sent.Sent)
	}

	e.ask(400, "POST", deadLettersPath+"/retry", admin, `{"kinds":1}`, nil)
	if reasons, page := e.openLetters(admin, ""); reasons != "5" || page.Total != 1 {
		t.Errorf("open: %s", reasons)
	}

	// The feed's event has the account that the directory gives its domain.
	var keys []string
	_, next, err := e.broker.Offsets(t.Context(), event.TopicRaw, 0)
	must(t, err)
	must(t, e.broker.Scan(t.Context(), event.TopicRaw, 0, 0, next,
		func(r *kafka.Record) { keys = append(keys, string(r.Key)+string(r.Value)) }))

	if got := strings.Join(keys, " "); got != `sub{"n":1} sub{"n":3}` {
		t.Errorf("on cc.raw: %s", got)
	}

	got := audittest.Entries(t, e.audit, "demo", "deadletter.")
	if len(got) != 5 { // one of them for a retry that found none
		t.Errorf("audit %q", got)
	}
}
