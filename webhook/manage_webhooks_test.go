package webhook

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit/audittest"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// metricValue returns the value of a metric without labels.
func metricValue(t testing.TB, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)

	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}

	t.Fatalf("no metric %s", name)
	return 0
}

func TestAWebhooksLife(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		e := newEnv(t, at, DefaultSettings(), 3)
		ctx := audittest.CallerContext(t, "user:admin")
		e.topic.put(1, "shop", entered, `{}`)
		config := Config{URL: "https://example.com/hook?key=1",
			Filters: identity.Filter{AccountIDs: []string{"shop", "shop"}}}
		made, secret, err := e.service.Create(ctx, "root", config)
		must(t, err)

		if !strings.HasPrefix(secret, "whsec_") || made.Format != FormatTrunkline || made.Status != StatusActive ||
			len(made.Filters.AccountIDs) != 1 {
			t.Errorf("made %+v with %s", made, secret)
		}

		rows, err := listPositions(ctx, e.db, 1)
		if err != nil || rows[made.ID].next != 1 {
			t.Errorf("begins at %+v, %v", rows, err)
		}

		stored, err := selectRow(ctx, e.db, "root", made.ID)
		must(t, err)
		if strings.Contains(stored.sealedKey, strings.TrimPrefix(secret, "whsec_")) {
			t.Error("the secret is stored as it is")
		}

		own := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		config.Format = FormatCloudEvents
		tag := made.ETag()

		for _, sent := range []string{"", own} { // kept, replaced
			config.Secret = sent
			put, err := e.service.Update(ctx, "root", made.ID, config, tag)
			must(t, err)

			_, again := e.service.Update(ctx, "root", made.ID, config, tag)
			for _, err := range []error{again, e.service.Delete(ctx, "root", made.ID, tag)} {
				if fault.KindOf(err) != fault.KindPrecondition {
					t.Errorf("with the ETag of before: %v", err)
				}
			}

			tag = put.ETag()
			changed, err := selectRow(ctx, e.db, "root", made.ID)
			must(t, err)
			key, err := openKey(e.keys, &changed)
			if want := map[string]string{"": secret, own: own}[sent]; err != nil || formatSecret(key) != want ||
				changed.Format != FormatCloudEvents {
				t.Errorf("after a PUT with the secret %q: %s, %v", sent, formatSecret(key), err)
			}
		}

		_, made2, err := e.service.Create(ctx, "root", config)
		if err != nil || made2 != "" {
			t.Errorf("a secret that was sent comes back: %q, %v", made2, err)
		}

		for _, account := range []string{"shop", "stranger"} {
			_, find := e.service.Find(ctx, account, made.ID)

			_, update := e.service.Update(ctx, account, made.ID, Config{URL: "https://example.com"}, "")
			_, retry := e.service.Retry(ctx, account, made.ID, 0)
			for _, err := range []error{find, update, retry, e.service.Delete(ctx, account, made.ID, "")} {
				if fault.KindOf(err) != fault.KindNotFound {
					t.Errorf("account %s: %v", account, err)
				}
			}
		}

		must(t, e.service.Delete(ctx, "root", made.ID, ""))
		rows, err = listPositions(ctx, e.db, 1)
		if _, left := rows[made.ID]; err != nil || left {
			t.Errorf("positions are left: %+v, %v", rows, err)
		}

		list, err := e.service.List(ctx, "root")
		if err != nil || len(list) != 1 || list[0].ID == made.ID {
			t.Errorf("listed: %+v, %v", list, err)
		}

		for _, action := range []string{"create", "update", "delete"} {
			line := fmt.Sprintf("webhook.%s user:admin webhook:%s ok", action, made.ID)
			if !slices.Contains(audittest.Entries(t, e.audit, "root", "webhook."), line) {
				t.Errorf("no audit entry %s", line)
			}
		}

		n, err := e.service.PurgeAccount(ctx, "root")
		if list, _ := e.service.List(ctx, "root"); err != nil || n != 1 || len(list) != 0 {
			t.Errorf("purged %d, left %v, %v", n, list, err)
		}
	})
}

func TestInvalidWebhooksAreRefused(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), DefaultSettings(), 1)
	for want, c := range map[string]Config{
		"url unsupported":    {URL: "http://example.com"},
		"url required":       {},
		"url invalid":        {URL: "https://user:password@example.com"},
		"format unsupported": {URL: "https://example.com", Format: "xml"},
		"secret invalid":     {URL: "https://example.com", Secret: "whsec_c2hvcnQ="},
		"filters.account_ids[0] unknown_account": {URL: "https://example.com",
			Filters: identity.Filter{AccountIDs: []string{"stranger"}}},
		"filters.names[0] unknown_name": {URL: "https://example.com",
			Filters: identity.Filter{Names: []string{"nothing"}}},
	} {
		_, _, err := e.service.Create(t.Context(), "root", c)
		if f := fault.As(err); f == nil || f.Kind != fault.KindInvalid || len(f.Fields) != 1 ||
			f.Fields[0].Field+" "+f.Fields[0].Code != want {
			t.Errorf("want %s, got %+v", want, err)
		}
	}

	for range e.service.settings.MaxPerAccount {
		e.createWebhook(Config{URL: "https://example.com"})
	}

	if _, _, err := e.service.Create(t.Context(), "root",
		Config{URL: "https://example.com"}); fault.KindOf(err) != fault.KindConflict ||
		!strings.Contains(err.Error(), "webhook.max_per_account") {
		t.Errorf("one too many: %v", err)
	}
}

// TestADeletedAccountGetsNoMoreEvents: the webhook is purged later.
func TestADeletedAccountGetsNoMoreEvents(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	ours, theirs := e.newTarget(nil), e.newTarget(nil)
	e.createWebhook(Config{URL: ours.url})
	_, _, err := e.service.Create(t.Context(), "kiosk", Config{URL: theirs.url})
	must(t, err)
	e.deliver()
	want := []event.ID{e.topic.put(0, "kiosk", entered, `{}`)}
	theirs.await(t, want)
	_, err = e.directory.DeleteAccount(t.Context(), "kiosk", "")
	must(t, err)
	want = append(want, e.topic.put(0, "kiosk", entered, `{}`), e.topic.put(0, "shop", entered, `{}`))
	waitFor(t, "the last event is received", func() bool { return slices.Contains(ours.ids(), want[2].String()) })

	if got := theirs.ids(); len(got) != 1 {
		t.Errorf("the deleted account's webhook got %v", got)
	}
}

// A node that lacked the master key sends nothing until it has it, whatever else changes meanwhile.
func TestAKeyThatCouldNotBeOpenedIsOpenedAtTheNextChange(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	made := e.createWebhook(Config{URL: "https://example.com/hook"})
	stored, err := selectRow(t.Context(), e.db, "root", made.ID)
	must(t, err)
	key, err := openKey(e.keys, &stored)
	must(t, err)

	others, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	must(t, err)
	_, err = others.Create()
	must(t, err)

	r := &registry{settings: e.settings, keys: others, log: slog.New(slog.DiscardHandler)}
	tree := e.directory.Tree()
	first := r.buildHook(&stored, nil, tree)
	second := r.buildHook(&stored, first, tree)
	r.keys = e.keys
	third := r.buildHook(&stored, second, tree)

	if !first.suspended || !second.suspended {
		t.Errorf("without the master key suspended %v, after a change %v", first.suspended, second.suspended)
	}
	if third.suspended || !bytes.Equal(third.key, key) {
		t.Errorf("with the master key suspended %v, key of %d bytes", third.suspended, len(third.key))
	}
	if r.buildHook(&stored, third, tree) != third {
		t.Error("without a change there is another hook")
	}
}
