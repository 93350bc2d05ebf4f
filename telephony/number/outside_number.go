package number

// Outside reports whether a trunk may take a destination for a number outside the switch: it
// has more digits than an extension, a "+" or a code.
func (p *Plan) Outside(destination string) bool {
	for _, d := range []dialled{parseDialled(destination), parseDialled(Plain(destination))} {
		if d.digits != "" && (d.hasPlus || d.hasCode || len(d.digits) > maxExtensionDigits) {
			return true
		}
	}
	return false
}
