// Drives and measures client-go, step by step like the Rust clients (rig/src/client.rs), with the
// same names.
//
//	bench convert IN OUT     makes a protobuf corpus of a JSON corpus
//	bench client --name value…
//	bench queue --name value…
//	bench pretended URL
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("convert, client or queue?"))
	}
	var figures map[string]float64
	var err error
	switch os.Args[1] {
	case "convert":
		err = convert(os.Args[2], os.Args[3])
	case "client":
		figures, err = client(parse(os.Args[2:]))
	case "pretended":
		err = pretended(os.Args[2])
	case "queue":
		figures = queue(parse(os.Args[2:]))
	default:
		err = fmt.Errorf("no such part: %s", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
	if figures != nil {
		fail(json.NewEncoder(os.Stdout).Encode(figures))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "client-go:", err)
		os.Exit(1)
	}
}
