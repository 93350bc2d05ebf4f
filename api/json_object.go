package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// requirement states whether a member must be present.
type requirement bool

const (
	required requirement = true
	optional requirement = false
)

// jsonObject reads a JSON object member by member and collects every error, so that a
// client learns all of them at once:
//
//	login := loginRequest{
//		Username: body.String("username", required),
//		Accounts: body.Strings("account_ids", optional),
//	}
//	if err := body.Err(invalidBody); err != nil {
//		return err
//	}
//
// Err adds an error for each member that was not read: it is unknown.
type jsonObject struct {
	members map[string]any
	path    string // of the object in the body, "" or ending in "."
	faults  *[]fault.Field
	nested  []*jsonObject
}

func newObject(members map[string]any) *jsonObject {
	return &jsonObject{members: members, faults: new([]fault.Field)}
}

func (o *jsonObject) fault(name, code, message string) {
	*o.faults = append(*o.faults, fault.Field{Field: o.path + name, Code: code, Message: message})
}

// takeMember removes a member and returns it.
func (o *jsonObject) takeMember(name string, need requirement) (any, bool) {
	v, ok := o.members[name]
	delete(o.members, name)
	if !ok && need == required {
		o.fault(name, "required", "is required")
	}
	return v, ok
}

// typedMember returns a member of type T. For another type, including null, it adds an
// error and returns the zero T.
func typedMember[T any](o *jsonObject, name string, need requirement, want string) T {
	var zero T
	v, ok := o.takeMember(name, need)
	if !ok {
		return zero
	}
	t, ok := v.(T)
	if !ok {
		o.fault(name, "wrong_type", "must be "+want)
		return zero
	}
	return t
}

// Has reports whether the member is present and was not read yet, for members whose absence
// differs from the zero value.
func (o *jsonObject) Has(name string) bool {
	_, ok := o.members[name]
	return ok
}

// String reads a string; a required one must not be empty.
func (o *jsonObject) String(name string, need requirement) string {
	v, present := o.takeMember(name, need)
	s, ok := v.(string)
	switch {
	case !present:
	case !ok:
		o.fault(name, "wrong_type", "must be a string")
	case s == "" && need == required:
		o.fault(name, "required", "must not be empty")
	}
	return s
}

// Int reads a whole number.
func (o *jsonObject) Int(name string, need requirement) int64 {
	v, present := o.takeMember(name, need)
	number, ok := v.(json.Number)
	n, err := strconv.ParseInt(number.String(), 10, 64)
	if present && (!ok || err != nil) {
		o.fault(name, "wrong_type", "must be a whole number")
		return 0
	}
	return n
}

// Strings reads an array of strings.
func (o *jsonObject) Strings(name string, need requirement) []string {
	elements := typedMember[[]any](o, name, need, "an array of strings")
	var all []string
	for i, element := range elements {
		s, ok := element.(string)
		if !ok {
			o.fault(name+"["+strconv.Itoa(i)+"]", "wrong_type", "must be a string")
			continue
		}
		all = append(all, s)
	}
	return all
}

// Object reads a nested object. It is never nil: an absent one has no members.
func (o *jsonObject) Object(name string, need requirement) *jsonObject {
	inner := &jsonObject{
		members: typedMember[map[string]any](o, name, need, "an object"),
		path:    o.path + name + ".",
		faults:  o.faults,
	}
	o.nested = append(o.nested, inner)
	return inner
}

// Objects reads an array of objects.
func (o *jsonObject) Objects(name string, need requirement) (all []*jsonObject) {
	for i, element := range typedMember[[]any](o, name, need, "an array of objects") {
		elementName := name + "[" + strconv.Itoa(i) + "]"
		members, ok := element.(map[string]any)
		if !ok {
			o.fault(elementName, "wrong_type", "must be an object")
			continue
		}
		inner := &jsonObject{members: members, path: o.path + elementName + ".", faults: o.faults}
		o.nested = append(o.nested, inner)
		all = append(all, inner)
	}
	return all
}

// Raw returns the members as JSON, for another package's parser.
func (o *jsonObject) Raw() (map[string]json.RawMessage, error) {
	members := make(map[string]json.RawMessage, len(o.members))
	for name, value := range o.members {
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("writing a member of the body: %w", err)
		}
		members[name] = raw
	}
	o.members = nil
	return members, nil
}

// Err returns the errors of the members as fault.KindInvalid, or nil.
func (o *jsonObject) Err(message string) error {
	o.addUnknownFaults()
	if len(*o.faults) == 0 {
		return nil
	}
	return fault.Invalid(message, *o.faults...)
}

func (o *jsonObject) addUnknownFaults() {
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		o.fault(name, "unknown", "is not a field of this request")
	}
	for _, inner := range o.nested {
		inner.addUnknownFaults()
	}
}

// readOnly reads a member that must be absent or equal to the stored value, a string or
// int64.
func (o *jsonObject) readOnly(name string, stored any) {
	if !o.Has(name) {
		return
	}
	equal := false
	switch stored := stored.(type) {
	case string:
		equal = o.String(name, optional) == stored
	case int64:
		equal = o.Int(name, optional) == stored
	}
	if !equal {
		o.fault(name, "read_only", "cannot be changed")
	}
}

// expiry reads a time in Unix seconds; 0 is the zero time, nil means that the member is
// absent.
func (o *jsonObject) expiry(name string) *time.Time {
	if !o.Has(name) {
		return nil
	}
	expiry := time.Time{}
	switch seconds := o.Int(name, optional); {
	case seconds < 0 || seconds > report.EndOfTime:
		o.fault(name, "out_of_range", "must be Unix seconds, of a year up to 9999")
	case seconds > 0:
		expiry = time.Unix(seconds, 0)
	}
	return &expiry
}
