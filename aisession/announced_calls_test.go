package aisession_test

import (
	"testing"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
)

func TestAnnouncements(t *testing.T) {
	h := startService(t, aisession.DefaultSettings(), nil)
	h.providers = map[string]aiprovider.Provider{"prov1": {ID: "prov1", AccountID: "demo"},
		"theirs": {ID: "theirs", AccountID: "other"}}
	const id = "6d1a2b3c-0000-4000-8000-00000000abcd"
	a := aiprovider.Announcement{AccountID: "demo", ProviderID: "prov1", UUID: id, CallID: "c",
		CallerIDNumber: "+49301"}
	if err := h.Announce(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := h.Announce(t.Context(), a); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("twice: %v", err)
	}

	got, p, err := h.TakeAnnouncement(t.Context(), mustUUID(t, id))
	if err != nil || got != a || p.ID != "prov1" {
		t.Errorf("got %+v, %v, %v", got, p, err)
	}

	if _, _, err := h.TakeAnnouncement(t.Context(), mustUUID(t, id)); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("a second time: %v", err)
	}

	a.ProviderID = "theirs"
	if err := h.Announce(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.TakeAnnouncement(t.Context(), mustUUID(t, id)); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("another account's provider: %v", err)
	}

	a.UUID = "none"
	if err := h.Announce(t.Context(), a); fault.KindOf(err) != fault.KindInvalid {
		t.Errorf("no UUID: %v", err)
	}
}
