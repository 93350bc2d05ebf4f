package asterisk

import (
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/ami"
)

func defaults() Config {
	s := DefaultSettings()
	s.Address, s.Username, s.Secret = "127.0.0.1:5038", testUser, testSecret
	return Config{Settings: s}
}

func TestOriginateAction(t *testing.T) {
	got, err := defaults().originateAction(order("c1"))
	if err != nil {
		t.Fatal(err)
	}

	want := ami.Action{Name: "Originate", ID: "c1-originate", Fields: []ami.Field{
		{Key: "Channel", Value: "PJSIP/1001"}, {Key: "Application", Value: "Dial"},
		{Key: "Data", Value: "Local/1002@default/n,60"},
		{Key: "Timeout", Value: "30000"}, {Key: "Async", Value: "true"},
		{Key: "ChannelId", Value: "c1-owner"}, {Key: "OtherChannelId", Value: "c1-owner-2"},
		{Key: "Variable", Value: "__origination_call_id=c1"}, {Key: "Variable", Value: "__interaction_id=int-c1"},
		{Key: "Variable", Value: "CONNECTEDLINE(name,i)=Click to call"},
		{Key: "Variable", Value: "CONNECTEDLINE(num,i)=1002"},
		{Key: "Variable", Value: "CALLERID(name)=1001"}, {Key: "Variable", Value: "CALLERID(num)=1001"},
		{Key: "Account", Value: "acc"},
	}}
	if got.Name != want.Name || got.ID != want.ID || !slices.Equal(got.Fields, want.Fields) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}

	cfg := defaults()
	cfg.Owner = "Local/{extension}@phones/n"
	cfg.Destination = "PJSIP/{destination}@trunk"
	cfg.Context = "{domain}-in"
	cfg.AccountCode = "-"
	got, err = cfg.originateAction(order("c1"))
	if err != nil || got.Fields[0].Value != "Local/1001@phones/n" || got.Fields[2].Value != "PJSIP/1002@trunk,60" ||
		got.Fields[len(got.Fields)-1].Key == "Account" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Nothing that a user sends can end an AMI line, a dial string or a variable.
func TestHostileValuesAreRefused(t *testing.T) {
	hostile := []string{"", "1002\r\nAction: Command", "1002\n", "1002\x00", "1002,60", "1002&PJSIP/9", "1002@evil",
		"1002/n", "1002|x", "${SHELL(x)}",
		"1002)", "(1002", "1 2", "a=b", "a;b", `"1002"`, "<1002>", "1002\\", "1002^x", "ä", "\xff", "1002:x",
		strings.Repeat("1", 65)}

	for name, set := range map[string]func(o *origination.Order, v string){
		"destination": func(o *origination.Order, v string) { o.Destination = v },
		"extension":   func(o *origination.Order, v string) { o.Extension = v },
		"id":          func(o *origination.Order, v string) { o.ID = v + "," },
		"interaction": func(o *origination.Order, v string) { o.InteractionID = v + "," },
		"account":     func(o *origination.Order, v string) { o.AccountID = v },
		"domain":      func(o *origination.Order, v string) { o.Domain = v + "," },
	} {
		for _, value := range hostile {
			o := order("c1")
			set(&o, value)
			if a, err := defaults().originateAction(o); fault.KindOf(err) != fault.KindInvalid {
				t.Errorf("%s %q: got %+v, %v", name, value, a, err)
			}
		}
	}

	for _, number := range []string{"1002", "+4930123456", "*98", "#1", "alice", "ai-support", "a.b_c"} {
		o := order("c1")
		o.Destination = number
		if _, err := defaults().originateAction(o); err != nil {
			t.Errorf("%s: %v", number, err)
		}
	}
}
