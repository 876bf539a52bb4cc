functions {
  int first_capture(array[] int history) {
    for (t in 1 : size(history)) if (history[t]) return t;
    return 0;
  }
  int last_capture(array[] int history) {
    int T = size(history);
    for (s in 0 : (T - 1)) {
      int t = T - s;
      if (history[t]) {
        return t;
      }
    }
    return 0;
  }
}
data {
  int<lower=2> T;
  int<lower=0> M;
  array[M, T] int<lower=0, upper=1> history;
}
transformed data {
  array[M] int first;
  array[M] int last;
  for (m in 1 : M) {
    first[m] = first_capture(history[m]);
    last[m] = last_capture(history[m]);
  }
}
parameters {
  vector<lower=0, upper=1>[T - 1] phi;
  vector<lower=0, upper=1>[T] p;
}
transformed parameters {
  vector<lower=0, upper=1>[T] unseen;
  unseen[T] = 1;
  for (s in 1 : (T - 1)) {
    int t = T - s;
    unseen[t] = 1 - phi[t] + phi[t] * (1 - p[t + 1]) * unseen[t + 1];
  }
}
model {
  for (m in 1 : M) {
    if (first[m] > 0) {
      for (t in (first[m] + 1) : last[m]) {
        1 ~ bernoulli(phi[t - 1]);
        history[m, t] ~ bernoulli(p[t]);
      }
      1 ~ bernoulli(unseen[last[m]]);
    }
  }
}
generated quantities {
  real identified = phi[T - 1] * p[T];
}
