# Turns the output of go test -bench into one Markdown table per package.
/^goos:/   { os = $2 }
/^goarch:/ { arch = $2 }
/^cpu:/    { cpu = substr($0, 6) }
/^pkg:/    { package = $2; heading = 0 }
/^Benchmark/ && NF > 3 {
	if (!machine) { printf "%s/%s, %s\n", os, arch, cpu; machine = 1 }
	if (!heading) { printf "\n### %s\n\n| benchmark | runs | results |\n| --- | ---: | --- |\n", package; heading = 1 }
	results = ""
	for (i = 3; i < NF; i += 2) results = results (i > 3 ? ", " : "") $i " " $(i + 1)
	printf "| %s | %s | %s |\n", substr($1, 10), $2, results
}
