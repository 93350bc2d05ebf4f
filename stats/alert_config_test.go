package stats

import (
	"slices"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/kafka/kafkatest"
)

// alertsIn returns the names of the rules that a node has for an account at a time.
func alertsIn(c *QueueConfigs, account string, at int64) (names []string) {
	rules, _, _ := c.alertsAt(account, at)
	for _, r := range rules {
		names = append(names, r.Name)
	}
	return names
}

func named(name string) []AlertRule {
	return []AlertRule{{Name: name, When: AlertWhen{Metric: MetricWaiting, Above: limit(5)}}}
}

func TestAlertsAreInForceLaterAndInherited(t *testing.T) {
	c := kafkatest.OpenEmbedded(t, 1)
	configs := newConfigs(t, c)
	tree := map[string][]string{"top": nil, "mid": {"top"}, "low": {"mid", "top"}, "other": nil}
	var defaults []string

	for _, r := range DefaultAlerts() {
		defaults = append(defaults, r.Name)
	}

	if got, tag, err := configs.FindAlerts(t.Context(), "low"); err != nil || tag != `"0"` ||
		got.InheritedFrom != InheritedDefault || len(got.Alerts) != len(defaults) {
		t.Fatalf("%+v, %s, %v", got, tag, err)
	}
	if tag, err := configs.UpdateAlerts(t.Context(), "top", named("top's"), `"0"`); err != nil || tag != `"1"` {
		t.Fatal(tag, err)
	}
	if _, err := configs.UpdateAlerts(t.Context(), "top", named("again"),
		`"0"`); fault.KindOf(err) != fault.KindPrecondition {
		t.Errorf("an old tag: %v", err)
	}
	if err := configs.inherit(t.Context(), tree); err != nil {
		t.Fatal(err)
	}

	other, now := newConfigs(t, c), time.Now().Unix() // another node
	if got, _, err := other.FindAlerts(t.Context(), "low"); err != nil || got.InheritedFrom != "top" ||
		got.Alerts[0].Name != "top's" {
		t.Fatalf("%+v, %v", got, err)
	}

	for _, account := range []string{"top", "mid", "low", "other"} {
		if got := alertsIn(other, account, now); !slices.Equal(got, defaults) {
			t.Errorf("%s has %q at once", account, got)
		}
	}

	_, _, until := other.alertsAt("low", now)
	if lead := until - now; lead < 14 || lead > 18 {
		t.Errorf("in force after %d s", lead)
	}

	for account, want := range map[string][]string{"top": {"top's"}, "mid": {"top's"}, "low": {"top's"},
		"other": defaults} {
		if got := alertsIn(other, account, now+60); !slices.Equal(got, want) {
			t.Errorf("%s has %q", account, got)
		}
	}

	// mid switches all off, low inherits that; then mid inherits again.
	if _, err := configs.UpdateAlerts(t.Context(), "mid", []AlertRule{}, ""); err != nil {
		t.Fatal(err)
	}
	if err := configs.inherit(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if got := alertsIn(configs, "low", now+120); len(got) != 0 {
		t.Errorf("low has %q", got)
	}
	if _, err := configs.UpdateAlerts(t.Context(), "mid", nil, ""); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if err := configs.inherit(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
	}

	if got := alertsIn(configs, "low", now+180); !slices.Equal(got, []string{"top's"}) {
		t.Errorf("low has %q", got)
	}

	versions := len(configs.alerts["low"])
	if err := configs.inherit(t.Context(), tree); err != nil || len(configs.alerts["low"]) != versions {
		t.Errorf("a tree that has not changed is written again: %v", err)
	}

	// The thresholds of queues are beside them on the topic.
	if _, err := configs.Update(t.Context(), "mid", configOf(30), ""); err != nil {
		t.Fatal(err)
	}
	if _, tag, err := newConfigs(t, c).Find(t.Context(), "mid"); err != nil || tag != `"1"` {
		t.Errorf("%s %v", tag, err)
	}

	for _, account := range []string{"top", "mid", "low"} {
		if _, err := configs.PurgeAccount(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}

	if got, tag, err := newConfigs(t, c).FindAlerts(t.Context(), "low"); err != nil || tag != `"0"` ||
		got.InheritedFrom != InheritedDefault {
		t.Errorf("after the purge: %+v, %s, %v", got, tag, err)
	}
}
