package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

type counters struct{ Lists, Watches, Bytes uint64 }

// control sends commands to the replay server.
type control struct{ address string }

func (c control) ask(into any, format string, arguments ...any) error {
	request, err := http.NewRequest("GET", "http://"+c.address+"/control/"+fmt.Sprintf(format, arguments...), nil)
	if err != nil {
		return err
	}
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return json.NewDecoder(answer.Body).Decode(into)
}

func (c control) do(format string, arguments ...any) error {
	var phase struct{ Events, Version uint64 }
	return c.ask(&phase, format, arguments...)
}
