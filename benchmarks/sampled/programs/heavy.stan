data { int<lower=1> P; vector[P] place; vector<lower=0>[P] width; }
parameters { vector[P] x; }
model { x ~ student_t(2, place, width); }
