package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/audit/audittest"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

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
