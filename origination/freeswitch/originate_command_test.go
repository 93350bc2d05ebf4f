package freeswitch

import (
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/origination"
)

func defaults() Config {
	settings := DefaultSettings()
	settings.Address, settings.Password = "127.0.0.1:1", "p"
	return Config{Settings: settings}
}

func TestOriginateCommand(t *testing.T) {
	got, err := defaults().originateCommand(order("c2c-1"))
	if err != nil {
		t.Fatal(err)
	}

	job := jobOf("c2c-1")
	vars := "origination_call_id,interaction_id,account_id,presence_data,sip_h_X-svc_call_type"
	want := "originate {^^;presence_data=trunkline:owner:" + job +
		";interaction_id=int-c2c-1;account_id=acc;origination_caller_id_number=1002;origination_caller_id_name='Click to call'" +
		";originate_timeout=30;ignore_early_media=true;loopback_bowout=false;ringback=%(2000,4000,440,480)}user/1001@pbx.example " +
		"&bridge({^^;presence_data=trunkline:destination:" + job + ";interaction_id=int-c2c-1;account_id=acc" +
		";sip_h_X-svc_call_type=clicktocall;origination_caller_id_number=1001;origination_caller_id_name=1001" +
		";originate_timeout=60;ignore_early_media=false;bridge_answer_timeout=60;loopback_bowout=false;ignore_display_updates=true" +
		";loopback_export=" + vars + ";export_vars=" + vars + ";origination_call_id=c2c-1}loopback/1002/default/XML)"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJobsAreMadeFromTheCall(t *testing.T) {
	// As it has always been: a later version finds the calls of this one.
	if got := jobOf("a"); got != "a77a51e4-ee32-584a-9df4-b56fde456861" || got == jobOf("b") {
		t.Errorf("%s, %s", got, jobOf("b"))
	}
}

// hostile are texts that would say something else in an originate command.
var hostile = []string{
	"1002)", "1002} ", "{x=y}1002", "1002,1003", "1002|1003", "10:_:02", "1002;x=y", "1002 &park", "10'02", `10"02`,
	`10\02`,
	"10\n02", "1002\r\n\r\nexit", "10\x0002", "${hangup}", "$(x)", "`x`", "1002/other/XML", "1002@host", "[x=y]1002",
	"<1002>",
	"10\u00a002", "10\u202e02", "١٢٣", "é", "\xff\xfe", "1002\t", "a=b", "^^:1002", "100%2C2",
}

func TestValuesThatCannotBeCarriedAreRefused(t *testing.T) {
	fields := map[string]func(*origination.Order, string){
		"destination":    func(o *origination.Order, v string) { o.Destination = v },
		"presence_id":    func(o *origination.Order, v string) { o.Extension = v },
		"domain":         func(o *origination.Order, v string) { o.Domain = v },
		"account_id":     func(o *origination.Order, v string) { o.AccountID = v },
		"interaction_id": func(o *origination.Order, v string) { o.InteractionID = v },
		"id":             func(o *origination.Order, v string) { o.ID = v },
	}

	for field, set := range fields {
		for _, value := range append([]string{"", strings.Repeat("1", 300)}, hostile...) {
			o := order("c")
			set(&o, value)
			command, err := defaults().originateCommand(o)
			f := fault.As(err)
			if err == nil || f.Kind != fault.KindInvalid || len(f.Fields) != 1 || f.Fields[0].Field != field {
				t.Errorf("%s %q: %v, %s", field, value, err, command)
			}
		}
	}

	for _, value := range []string{"1002", "+390212345", "*98", "#31#123", "alice.smith", "queue_1-a"} {
		o := order("c")
		o.Destination = value
		if _, err := defaults().originateCommand(o); err != nil {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// Each accepted order is one command for the switch, with our variables and no others.
func FuzzOriginate(f *testing.F) {
	for _, value := range append([]string{"1002", "+39 02"}, hostile...) {
		f.Add(value, "1001", "pbx.example")
	}

	plain, err := defaults().originateCommand(order("c"))
	if err != nil {
		f.Fatal(err)
	}

	names := func(t *testing.T, m []string) []string {
		var names []string
		for _, part := range []string{m[1], m[4]} {
			for name := range parseVariables(t, part) {
				names = append(names, name)
			}
		}

		slices.Sort(names)
		return names
	}

	f.Fuzz(func(t *testing.T, destination, extension, domain string) {
		o := order("c")
		o.Destination, o.Extension, o.Domain = destination, extension, domain
		command, err := defaults().originateCommand(o)
		if err != nil {
			if fault.KindOf(err) != fault.KindInvalid {
				t.Fatal(err)
			}
			return
		}

		m := originateForm.FindStringSubmatch("bgapi " + command)
		if m == nil || m[2] != extension || m[3] != domain || m[5] != destination {
			t.Fatalf("%q", command)
		}
		if want := names(t, originateForm.FindStringSubmatch("bgapi "+plain)); !slices.Equal(names(t, m), want) {
			t.Fatalf("%q", command)
		}
	})
}
