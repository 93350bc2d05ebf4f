package testservice

import (
	"context"
	"errors"
	"testing"
)

func TestTheFirstWayThatWorksIsTaken(t *testing.T) {
	const variable = "TRUNKLINE_TEST_NOTHING"
	works := func(name string) startMethod {
		return startMethod{name,
			func(context.Context, stopPolicy) (*service, error) { return &service{address: name}, nil }}
	}

	fails := func(name string, err error) startMethod {
		return startMethod{name, func(context.Context, stopPolicy) (*service, error) { return nil, err }}
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		environment string
		ways        []startMethod
		want        string
		skip        bool // unless CI is true
	}{
		"the environment before all": {environment: "given", ways: []startMethod{works("first")},
			want: "given"},
		"the first way": {ways: []startMethod{works("first"), works("second")}, want: "first"},
		"the second where the first fails": {ways: []startMethod{fails("first", broken), works("second")},
			want: "second"},
		"none, for want of an install": {ways: []startMethod{fails("first", broken),
			fails("second", errMissing)}, skip: true},
		"none, though what is needed is there": {ways: []startMethod{fails("first", broken), fails("second", broken)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(variable, c.environment)
			opened, err := serviceKind{"nothing", variable, c.ways}.open(t.Context(), stopWithBinary)
			if c.want != "" {
				if err != nil || opened.address != c.want {
					t.Fatalf("%+v, %v; want %s", opened, err, c.want)
				}
				return
			}

			if err == nil {
				t.Fatalf("opened %+v", opened)
			}

			t.Setenv("CI", "")
			if maySkip(err) != c.skip {
				t.Errorf("may skip for %v: %v", err, !c.skip)
			}

			t.Setenv("CI", "true")
			if maySkip(err) {
				t.Errorf("may skip in CI for %v", err)
			}
		})
	}
}
