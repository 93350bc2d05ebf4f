package webhook

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"trunkline/event"
	"trunkline/internal/masterkey"
	"trunkline/internal/testservice/testdb"
)

// TestADeletedAccountGetsNoMoreEvents: the webhook is purged later.
func TestADeletedAccountGetsNoMoreEvents(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	ours, theirs := e.startReceiver(nil), e.startReceiver(nil)
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

// Until the registry has noticed a deletion, neither the reader nor what reads older events selects any for the
// deleted account's webhook.
func TestALoadedWebhookOfADeletedAccountSelectsNothing(t *testing.T) {
	e := newEnv(t, testdb.SQLite(t), fastSettings(), 1)
	made, _, err := e.service.Create(t.Context(), "kiosk", Config{URL: "https://example.com/hook"})
	must(t, err)
	stored, err := selectRow(t.Context(), e.db, "kiosk", made.ID)
	must(t, err)
	hook := (&registry{settings: e.settings, keys: e.keys}).buildHook(&stored, nil, e.directory.Tree())
	message := &filterHeaders{account: "kiosk", typeBits: event.TypeClassOf(event.QueueCall, "svc.cc", ""),
		name: event.NameBit([]byte(event.NameQueueCallEntered))}

	selected := func() (byReader, byOlder bool) {
		newWebhookSnapshot([]*loadedWebhook{hook}).match(message, e.directory.Tree(),
			func(*loadedWebhook) { byReader = true })
		return byReader, hook.selects(message, e.directory.Tree())
	}

	byReader, byOlder := selected()
	if !byReader || !byOlder {
		t.Fatalf("before the deletion selected by the reader %t, by what reads older events %t", byReader, byOlder)
	}

	_, err = e.directory.DeleteAccount(t.Context(), "kiosk", "")
	must(t, err)
	byReader, byOlder = selected()
	if byReader || byOlder {
		t.Errorf("after the deletion selected by the reader %t, by what reads older events %t", byReader, byOlder)
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
