package repository_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	"github.com/millrace-dev/millrace/journal"
	"github.com/millrace-dev/millrace/repository"
)

// A client reads an account and changes it later, on condition that no other client has changed it.
// It sends back the version that it has read.
func ExampleWithExpectedVersion() {
	j, err := openJournal(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	accounts, err := repository.New(j, Accounts, repository.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := accounts.Execute(context.Background(), "42", Deposit(100)); err != nil {
		fmt.Println(err)
		return
	}

	withdraw := func(w http.ResponseWriter, r *http.Request) {
		version, err := strconv.ParseUint(strings.Trim(r.Header.Get("If-Match"), `"`), 10, 64)
		if err != nil {
			http.Error(w, "If-Match: send the ETag of the account", http.StatusPreconditionRequired)
			return
		}
		account, err := accounts.Execute(r.Context(), "42", Withdraw(30), repository.WithExpectedVersion(version))
		var conflict *journal.ConflictError
		switch {
		case errors.As(err, &conflict):
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, conflict.Actual))
			http.Error(w, "the account has changed", http.StatusPreconditionFailed)
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		default:
			w.Header().Set("ETag", fmt.Sprintf(`"%d"`, account.Version))
			fmt.Fprint(w, account.State.Balance)
		}
	}
	for range 2 {
		request := httptest.NewRequest(http.MethodPost, "/accounts/42/withdrawals", nil)
		request.Header.Set("If-Match", `"1"`)
		response := httptest.NewRecorder()
		withdraw(response, request)
		fmt.Println(response.Code, response.Header().Get("ETag"), strings.TrimSpace(response.Body.String()))
	}

	// Output:
	// 200 "2" 70
	// 412 "2" the account has changed
}
